package connectortest

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/ca"
	"github.com/ALRubinger/aileron/proxy"
	"github.com/ALRubinger/aileron/proxy/front"
	"github.com/ALRubinger/aileron/proxy/scrub"
	"github.com/ALRubinger/aileron/proxy/upstream"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/vault"
)

const (
	username = "sample-user" // of basic credentials
	echoKey  = "aileron_echo"
	echoMark = "aileron-echo-of-the-request" // the stub replaces it by what it has received

	patience = 2 * time.Minute // for one request to a server on this machine
	maxBody  = 2 << 20
)

// bench is a plane, a stub of the service behind it, and a client before it.
type bench struct {
	index  *spec.Index
	secret string
	plane  *proxy.Plane
	client *http.Client
	rows   chan audit.Row // outcomes
	stops  []func()

	mu   sync.Mutex
	seen *seenRequest
	body []byte // of the next response
}

// seenRequest is a request that arrived at the stub.
type seenRequest struct {
	*http.Request
	body       string
	everything string // in which a secret could be
}

// newBench starts the stub and the plane, in which the connector is bound to a new secret.
func newBench(ctx context.Context, c *spec.Connector, index *spec.Index) (b *bench, err error) {
	b = &bench{index: index, secret: "test-" + rand.Text(), rows: make(chan audit.Row, 16)}
	defer func() {
		if err != nil {
			b.close()
		}
	}()
	pins, roots, err := b.serveStub(c)
	if err != nil {
		return b, fmt.Errorf("start the stub: %w", err)
	}
	own, err := ca.NewSession(ca.Options{Session: "connector test"})
	if err != nil {
		return b, fmt.Errorf("make the session's CA: %w", err)
	}
	b.plane, err = proxy.New(proxy.Config{Session: audit.NewID(), Token: rand.Text(), CA: own, Audit: b,
		Upstream: upstream.Options{Resolve: pins, Roots: roots}, Started: time.Now()})
	if err != nil {
		return b, err
	}
	grants := &proxy.Grants{Index: index}
	if need := c.Credential(); need != nil {
		secret, err := vault.NewSecret([]byte(b.secret))
		if err != nil {
			return b, err
		}
		bound := vault.Credential{Kind: string(need.Kind), Secret: secret}
		set := []scrub.Credential{{Secret: []byte(b.secret)}}
		if need.Kind.HasUsername() {
			bound.Username, set[0].Username = username, username
		}
		for _, name := range c.Usernames() {
			set = append(set, scrub.Credential{Secret: []byte(b.secret), Username: name})
		}
		grants.Bound = map[spec.FQN]proxy.Bound{c.FQN: {Binding: "test", Credential: bound}}
		grants.Scrub = scrub.NewSet(set)
	}
	b.plane.SetGrants(grants)
	return b, b.serve(ctx, own)
}

// serve starts the plane, and makes its client.
func (b *bench) serve(ctx context.Context, own *ca.Session) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("start the proxy: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = front.New(b.plane).Serve(ctx, l, front.Listener{Sealed: true})
	}()
	roots := x509.NewCertPool()
	roots.AddCert(own.Root())
	transport := &http.Transport{
		Proxy:             http.ProxyURL(&url.URL{Scheme: "http", Host: l.Addr().String()}),
		TLSClientConfig:   &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		DisableKeepAlives: true,
	}
	b.client = &http.Client{Transport: transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	b.stops = append(b.stops, func() { cancel(); <-served; b.plane.Drain(context.WithoutCancel(ctx)) })
	return nil
}

// close stops what newBench has started, the last first.
func (b *bench) close() {
	for len(b.stops) > 0 {
		stop := b.stops[len(b.stops)-1]
		b.stops = b.stops[:len(b.stops)-1]
		stop()
	}
}

// serveStub starts the stub, with TLS and in clear, and returns where the plane finds each host, and the stub's root.
func (b *bench) serveStub(c *spec.Connector) (map[string]netip.AddrPort, *x509.CertPool, error) {
	authority, err := ca.NewSession(ca.Options{Session: "connector test stub"})
	if err != nil {
		return nil, nil, err
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12,
		GetCertificate: func(h *tls.ClientHelloInfo) (*tls.Certificate, error) { return authority.Leaf(h.ServerName) }}
	var at [2]netip.AddrPort
	for i := range at {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, nil, err
		}
		at[i] = netip.MustParseAddrPort(l.Addr().String())
		if i == 1 {
			l = tls.NewListener(l, config)
		}
		server := &http.Server{Handler: http.HandlerFunc(b.respond), ReadHeaderTimeout: patience}
		go func() { _ = server.Serve(l) }()
		b.stops = append(b.stops, func() { _ = server.Close() })
	}
	pins := map[string]netip.AddrPort{}
	for _, h := range c.Manifest.Hosts {
		to := at[1]
		if h.Port == 80 {
			to = at[0]
		}
		pins[fmt.Sprintf("%s:%d", hostOf(h), h.Port)] = to
	}
	roots := x509.NewCertPool()
	roots.AddCert(authority.Root())
	return pins, roots, nil
}

// respond is the service: it repeats what it gets.
func (b *bench) respond(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(io.LimitReader(r.Body, maxBody))
	var all strings.Builder
	fmt.Fprintf(&all, "%s %s", r.Method, r.URL)
	for name, values := range r.Header {
		fmt.Fprintf(&all, "; %s: %s", name, strings.Join(values, ", "))
	}
	b.mu.Lock()
	b.seen = &seenRequest{r, string(body), all.String() + string(body)}
	text := b.body
	b.mu.Unlock()
	echo, err := json.Marshal(all.String())
	if err == nil {
		text = bytes.Replace(text, []byte(`"`+echoMark+`"`), echo, 1)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Echo", strings.Join(strings.Fields(all.String()), " "))
	_, _ = w.Write(text)
}

// Append records a row of the plane.
func (b *bench) Append(_ context.Context, r audit.Row) (audit.Row, error) {
	if r.Decision != "" {
		select {
		case b.rows <- r:
		default: // of a connection that is of no interest
		}
	}
	return r, nil
}

// AppendSoon records a row of the plane.
func (b *bench) AppendSoon(ctx context.Context, r audit.Row) error {
	_, err := b.Append(ctx, r)
	return err
}

// response is what the client got, and what the plane recorded.
type response struct {
	Status       int
	body, header string
	row          audit.Row
	seen         *seenRequest
}

// denial returns the message of a denial, or the status.
func (r response) denial() string {
	var e struct {
		Error struct{ Class, Message string }
	}
	if json.Unmarshal([]byte(r.body), &e) == nil && e.Error.Message != "" {
		return e.Error.Class + ", " + e.Error.Message
	}
	return fmt.Sprintf("the status %d", r.Status)
}

// send sends a request through the plane.
func (b *bench) send(ctx context.Context, op *spec.Operation, call spec.Call, body []byte) (got response, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	b.mu.Lock()
	b.seen, b.body = nil, body
	b.mu.Unlock()
	for len(b.rows) > 0 {
		<-b.rows
	}
	req, err := http.NewRequestWithContext(ctx, call.Target.Method, address(call.Target), bytes.NewReader(call.Body))
	if err != nil {
		return got, err
	}
	if call.Body != nil {
		req.Header.Set("Content-Type", cmp.Or(call.ContentType, "application/json"))
	}
	res, err := b.client.Do(req)
	if err != nil {
		return got, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxBody))
	if err != nil {
		return got, err
	}
	got = response{Status: res.StatusCode, body: string(text), header: fmt.Sprint(res.Header)}
	select {
	case got.row = <-b.rows:
	case <-ctx.Done():
		return got, fmt.Errorf("wait for the audit row of %s: %w", op.Name, ctx.Err())
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	got.seen = b.seen
	return got, nil
}
