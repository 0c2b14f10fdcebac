package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/ca"
	"github.com/ALRubinger/aileron/e2e/must"
)

// spoken is an origin whose responses a test writes. It counts its connections.
type spoken struct {
	conns atomic.Int64
	gone  chan struct{} // gets one for each connection that ended
}

// speak returns a world whose api.good.example is served by say, once for each
// request to path.
func speak(t *testing.T, set func(*Config), say func(conn net.Conn, path string)) (*world, *spoken) {
	t.Helper()
	authority := must.Get(ca.NewSession(ca.Options{Session: "spoken"}))(t)
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{MinVersion: tls.VersionTLS12,
		GetCertificate: func(h *tls.ClientHelloInfo) (*tls.Certificate, error) { return authority.Leaf(h.ServerName) }})
	must.Do(t, err)
	s := &spoken{gone: make(chan struct{}, 64)}
	var group sync.WaitGroup
	group.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			s.conns.Add(1)
			group.Go(func() {
				defer func() { _ = conn.Close(); s.gone <- struct{}{} }()
				br := bufio.NewReader(conn)
				for {
					r, err := http.ReadRequest(br)
					if err != nil {
						return
					}
					_, _ = io.Copy(io.Discard, r.Body)
					say(conn, r.URL.Path)
				}
			})
		}
	})
	t.Cleanup(group.Wait)
	t.Cleanup(func() { _ = l.Close() })
	w := newWorldWith(t, false, func(c *Config) {
		c.Upstream.Roots.AddCert(authority.Root())
		c.Upstream.Resolve["api.good.example:443"] = netip.MustParseAddrPort(l.Addr().String())
		set(c)
	}, hello)
	return w, s
}

// ends waits until a connection has ended.
func (s *spoken) ends(t *testing.T) {
	t.Helper()
	select {
	case <-s.gone:
	case <-time.After(testPatience):
		t.Fatal("the upstream connection is still open")
	}
}

func plainly(*Config) {}

// Connection is a field of one hop (RFC 9110 section 7.6.1): a host that closes
// its connection after each response ends neither the client's nor the streams
// beside it.
func TestAnUpstreamThatClosesEndsNoConnectionOfItsClient(t *testing.T) {
	for _, c := range []struct{ name, response string }{
		{"with a length", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"},
		{"up to the end", "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nok"},
		{"of HTTP/1.0", "HTTP/1.0 200 OK\r\n\r\nok"},
	} {
		t.Run(c.name, func(t *testing.T) {
			goOn := make(chan struct{})
			w, _ := speak(t, plainly, func(conn net.Conn, path string) {
				if strings.HasSuffix(path, "/long") {
					_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nlong")
					<-goOn
					_, _ = io.WriteString(conn, " tail")
					return
				}
				_, _ = io.WriteString(conn, c.response)
				_ = conn.Close()
			})
			client := w.h2client()
			defer client.CloseIdleConnections()
			var conns []net.Conn
			trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { conns = append(conns, info.Conn) }}
			ctx := httptrace.WithClientTrace(t.Context(), trace)
			get := func(path string) *http.Response {
				t.Helper()
				r := must.Get(http.NewRequestWithContext(ctx, http.MethodGet, "https://api.good.example"+path, http.NoBody))(t)
				res := must.Get(client.Do(r))(t)
				return res
			}
			long := get("/v1/items/long")
			defer long.Body.Close()
			for range 3 {
				res := get("/v1/items")
				if body, err := io.ReadAll(res.Body); res.StatusCode != 200 || string(body) != "ok" || err != nil {
					t.Errorf("got %d %q, %v", res.StatusCode, body, err)
				}
				_ = res.Body.Close()
			}
			close(goOn)
			if body, err := io.ReadAll(long.Body); string(body) != "long tail" || err != nil {
				t.Errorf("the stream beside them got %q, %v", body, err)
			}
			if slices.ContainsFunc(conns, func(c net.Conn) bool { return c != conns[0] }) {
				t.Error("the client needed another connection")
			}

			conn := w.tunnel("api.good.example")
			defer conn.Close()
			br := bufio.NewReader(conn)
			for range 3 {
				must.Get(io.WriteString(conn, "GET /v1/items HTTP/1.1\r\nHost: api.good.example\r\n\r\n"))(t)
				res, err := http.ReadResponse(br, nil)
				must.Do(t, err)
				if body, err := io.ReadAll(res.Body); string(body) != "ok" || err != nil || res.Close {
					t.Errorf("over HTTP/1.1: got %q, %v, Connection: close is %t", body, err, res.Close)
				}
			}
		})
	}
}

func TestAClientThatLeavesClosesItsUpstreamConnection(t *testing.T) {
	w, s := speak(t, plainly, func(conn net.Conn, _ string) {
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nsome")
	})
	ctx, cancel := context.WithCancel(t.Context())
	req := must.Get(http.NewRequestWithContext(ctx, http.MethodGet, "https://api.good.example/v1/items/1", nil))(t)
	res := must.Get(w.client.Do(req))(t)
	defer res.Body.Close()
	must.Get(io.ReadFull(res.Body, make([]byte, 4)))(t)
	cancel()
	s.ends(t)
}

func TestDrainedPlanesKeepNoConnection(t *testing.T) {
	w, s := speak(t, plainly, func(conn net.Conn, _ string) {
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
	})
	w.do("GET", "https://api.good.example/v1/items", "")
	w.plane.Drain(t.Context())
	s.ends(t)
}

// The response begins before the request has ended, and answers each part.
func TestAResponseStreamsBesideItsRequest(t *testing.T) {
	set := scripted(t, "http/1.1", func(_ int, c *tls.Conn) {
		r, err := http.ReadRequest(bufio.NewReader(c))
		if err != nil {
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
		for part := make([]byte, 64); ; {
			n, err := r.Body.Read(part)
			if n > 0 {
				_, _ = fmt.Fprintf(c, "%x\r\n%s\r\n", n, part[:n])
			}
			if err != nil {
				_, _ = io.WriteString(c, "0\r\n\r\n")
				return
			}
		}
	})
	w := newWorldWith(t, false, set, nil)
	in, out := io.Pipe()
	req := must.Get(http.NewRequestWithContext(t.Context(), "POST", "https://api.good.example/v1/items", in))(t)
	go func() { _, _ = io.WriteString(out, "one") }()
	res, err := w.client.Do(req)
	must.Do(t, err)
	defer res.Body.Close()
	for _, part := range []string{"one", "two", "three"} {
		got := make([]byte, len(part))
		if _, err := io.ReadFull(res.Body, got); err != nil || string(got) != part {
			t.Fatalf("read %q, %v, want %q", got, err, part)
		}
		if next := map[string]string{"one": "two", "two": "three"}[part]; next != "" {
			_, _ = io.WriteString(out, next)
		}
	}
	_ = out.Close()
	if rest, err := io.ReadAll(res.Body); err != nil || len(rest) > 0 {
		t.Errorf("behind it come %q, %v", rest, err)
	}
}

// A host that refuses a body and closes is understood, and not used again.
func TestAnEarlyRefusalOfABodyArrives(t *testing.T) {
	set := scripted(t, "http/1.1", func(_ int, c *tls.Conn) {
		if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
			_, _ = io.WriteString(c, "HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\nbig")
			_ = c.CloseWrite()
			_, _ = io.Copy(io.Discard, c)
		}
	})
	w := newWorldWith(t, false, set, nil)
	res, body := w.do("POST", "https://api.good.example/v1/items", strings.Repeat("0123456789abcdef", 1<<16))
	if res.StatusCode != 413 || body != "big" {
		t.Errorf("got %d %q", res.StatusCode, body)
	}
}

func TestAClientThatBreaksOffItsBodyClosesItsUpstreamConnection(t *testing.T) {
	w, s := speak(t, plainly, func(net.Conn, string) {})
	conn := w.tunnel("api.good.example")
	_, err := io.WriteString(conn, "POST /v1/items HTTP/1.1\r\nHost: api.good.example\r\nContent-Length: 1000\r\n\r\nhalf")
	must.Do(t, err)
	w.eventually(func() bool { return s.conns.Load() == 1 })
	_ = conn.Close()
	s.ends(t)
}
