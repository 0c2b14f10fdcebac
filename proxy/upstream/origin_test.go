package upstream

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/must"
)

// patience is as long as only a defect takes, on a busy machine too.
var patience = must.Patience(5 * time.Minute)

// originHost is the host of every test's origin, as in a request's URL.
const originHost = "example.com:443"

// origin is a TLS server whose connections a test serves as it likes.
type origin struct {
	opts   Options // of a client that reaches it
	config *tls.Config
	conns  atomic.Int64
	gone   chan struct{} // receives a value for each connection that has ended
}

// newOrigin starts an origin that speaks one protocol by ALPN and serves its
// n-th connection, from 1, with serve.
func newOrigin(t testing.TB, alpn string, serve func(n int64, c *tls.Conn)) *origin {
	t.Helper()
	certified := httptest.NewTLSServer(nil) // for its certificate
	certificate := certified.Certificate()
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: certified.TLS.Certificates, NextProtos: []string{alpn}}
	certified.Close()
	l, err := tls.Listen("tcp", "127.0.0.1:0", cfg)
	must.Do(t, err)
	o := &origin{config: cfg, gone: make(chan struct{}, 64)}
	o.opts.Roots = x509.NewCertPool()
	o.opts.Roots.AddCert(certificate)
	// No time-out of the client's is to end what a test waits for.
	o.opts.Dial, o.opts.Stall, o.opts.Idle = time.Hour, time.Hour, time.Hour
	o.opts.Resolve = map[string]netip.AddrPort{originHost: netip.MustParseAddrPort(l.Addr().String())}
	over, end := context.WithCancel(context.Background())
	var group sync.WaitGroup
	group.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			n := o.conns.Add(1)
			stop := context.AfterFunc(over, func() { _ = c.Close() }) // of a test that failed
			group.Go(func() {
				defer stop()
				defer func() { _ = c.Close(); o.gone <- struct{}{} }()
				if secure := c.(*tls.Conn); secure.HandshakeContext(t.Context()) == nil {
					serve(n, secure)
				}
			})
		}
	})
	t.Cleanup(func() { _ = l.Close(); end(); group.Wait() })
	return o
}

// respond returns a function that serves a connection: it writes the response to
// each request that it reads, until the response is "".
func respond(response func(r *http.Request) string) func(int64, *tls.Conn) {
	return func(_ int64, c *tls.Conn) {
		for br := bufio.NewReader(c); ; {
			r, err := http.ReadRequest(br)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, r.Body)
			text := response(r)
			if text == "" {
				return
			}
			_, _ = io.WriteString(c, text)
		}
	}
}

// client returns a client that reaches the origin.
func (o *origin) client(t testing.TB, set ...func(*Options)) *Client {
	t.Helper()
	opts := o.opts
	for _, f := range set {
		f(&opts)
	}
	u, err := New(opts)
	must.Do(t, err)
	t.Cleanup(u.Close)
	return u
}

// awaitEnd waits until a connection has ended.
func (o *origin) awaitEnd(t testing.TB) {
	t.Helper()
	select {
	case <-o.gone:
	case <-time.After(patience):
		t.Fatal("the connection is still open")
	}
}

// newRequest returns a request to the origin. Without a body it has none.
func newRequest(t testing.TB, method, path string, body io.Reader) *http.Request {
	t.Helper()
	r := (&http.Request{Method: method, URL: &url.URL{Scheme: "https", Host: originHost, Path: path}, Host: "example.com",
		Header: http.Header{}, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}).WithContext(t.Context())
	if body != nil {
		r.Body, r.ContentLength = NewBody(io.NopCloser(body)), -1
		if s, ok := body.(*strings.Reader); ok {
			r.ContentLength = int64(s.Len())
		}
	}
	return r
}

// roundTrip sends r and returns the status and the body of its response.
func roundTrip(u *Client, r *http.Request, route Route) (status int, body string, err error) {
	res, err := u.RoundTrip(r, route)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	return res.StatusCode, string(got), err
}

// errorKind returns the kind of an error of RoundTrip.
func errorKind(t testing.TB, err error) Kind {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("the error is %v (%T), want an *Error", err, err)
	}
	return e.Kind
}

// eventually reports whether done becomes true.
func eventually(done func() bool) bool {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for late := time.After(patience); ; {
		select {
		case <-tick.C:
			if done() {
				return true
			}
		case <-late:
			return false
		}
	}
}
