package attacks

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/ca"
	"github.com/ALRubinger/aileron/e2e/must"
)

// TestTheNaiveProxyFails tries the harness: a proxy as anyone would first
// write it, net/http's server and ReverseProxy, must be found out by each of
// these cases. A suite that finds nothing there proves nothing anywhere.
func TestTheNaiveProxyFails(t *testing.T) {
	known := map[string]attack{}
	for _, cat := range suite() {
		for _, a := range cat.cases {
			known[a.id] = a
		}
	}
	for id, want := range map[string]string{
		"LEK-13": "O1: the box received S1, gzip", "LEK-17": "O1: the box received S1", "LEK-18": "O1: the box received S1",
		"UPG-04": "O1: the box received S1", "CRD-06": "was asked without S1", "CRD-22": "the origin got 2 POSTs",
		"PTH-22": "0 outcome rows, want 1", "AUD-01": "0 outcome rows, want 1",
	} {
		t.Run(id, func(t *testing.T) {
			a, ok := known[id]
			if !ok {
				t.Fatalf("the suite has no %s", id)
			}
			n := newNaive(t)
			found := runCase(t, n, a)
			for name, fails := range found {
				for _, f := range fails {
					if strings.Contains(f, want) {
						t.Logf("found out: %s: %s", name, f)
						return
					}
				}
			}
			t.Errorf("%s does not find out the naive proxy; it found %q", id, found)
		})
	}
	t.Run("otherwise it serves", func(t *testing.T) {
		n := newNaive(t)
		if fails := try(t, n, "plain", func(c *testCase) {
			if a := c.get("api.good.test", "/v1/items?q=1"); a.status != 200 || strings.Contains(a.body, on.secrets["S1"]) {
				c.failf("got %s", a)
			}
		}, nil); len(fails) != 0 {
			t.Errorf("the naive proxy fails what it should hold, so that its failures prove nothing: %q", fails)
		}
	})
}

// naive is that proxy. It does what it can: it knows the operations, injects,
// replaces secrets in headers and bodies, drops the client's Authorization,
// and writes a row for each request that its handler sees.
type naive struct {
	ca        *ca.Session
	transport *http.Transport

	mu   sync.Mutex
	rows []audit.Row
}

func newNaive(t *testing.T) *subject {
	t.Helper()
	authority := must.Get(ca.NewSession(ca.Options{Session: "naive"}))(t)
	roots := x509.NewCertPool()
	roots.AddCert(on.roots.cert)
	n := &naive{ca: authority,
		transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}}
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	quiet := log.New(io.Discard, "", 0)
	outer := &http.Server{ErrorLog: quiet, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect {
			n.refuse(w, r, r.Host)
			return
		}
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
		host, _, _ := net.SplitHostPort(r.RequestURI)
		secure := tls.Server(conn,
			&tls.Config{MinVersion: tls.VersionTLS12,
				GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return authority.Leaf(host) }})
		inner := &http.Server{Handler: n.handler(r.RequestURI), ErrorLog: quiet}
		_ = inner.Serve(&oneConn{conn: secure})
	})}
	go func() { _ = outer.Serve(l) }()
	t.Cleanup(func() { _ = outer.Close(); n.transport.CloseIdleConnections() })
	trusted := x509.NewCertPool()
	trusted.AddCert(authority.Root())
	return &subject{patience: 3 * time.Second, forgets: true, addr: l.Addr().String(), token: "t", roots: trusted,
		logs: func() []byte { return nil }, files: func() []string { return nil },
		last: func() int64 {
			n.mu.Lock()
			defer n.mu.Unlock()
			return int64(len(n.rows))
		},
		rows: func(after int64) []audit.Row {
			n.mu.Lock()
			defer n.mu.Unlock()
			return append([]audit.Row{}, n.rows[after:]...)
		}}
}

// oneConn is a listener of one connection.
type oneConn struct {
	mu   sync.Mutex
	conn net.Conn
}

func (o *oneConn) Accept() (net.Conn, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.conn == nil {
		return nil, net.ErrClosed
	}
	c := o.conn
	o.conn = nil
	return c, nil
}

func (*oneConn) Close() error   { return nil }
func (*oneConn) Addr() net.Addr { return &net.TCPAddr{} }

func (n *naive) write(r audit.Row) {
	n.mu.Lock()
	defer n.mu.Unlock()
	r.Seq = int64(len(n.rows) + 1)
	n.rows = append(n.rows, r)
}

func (n *naive) refuse(w http.ResponseWriter, r *http.Request, host string) {
	n.write(audit.Row{Event: audit.EventSandboxRejected, Decision: audit.DecisionRejected, Reason: "denied", Host: host,
		Method: r.Method,
		Path:   r.URL.Path, Fields: map[string]any{"request_id": audit.NewID()}})
	http.Error(w, "denied", http.StatusForbidden)
}

func (n *naive) handler(hostport string) http.Handler {
	host, port, _ := net.SplitHostPort(hostport)
	number, _ := strconv.Atoi(port)
	secret := ""
	for name, holder := range holders {
		if holder == hostport {
			secret = on.secrets[name]
		}
	}
	proxy := &httputil.ReverseProxy{
		Transport: n.transport, ErrorLog: log.New(io.Discard, "", 0),
		Director: func(r *http.Request) { //nolint:staticcheck // what the naive do is the point
			r.URL.Scheme, r.URL.Host, r.Host = "https", hostport, host
			r.Header.Set("Authorization", "Bearer "+secret)
		},
		ModifyResponse: func(res *http.Response) error {
			if res.StatusCode == http.StatusSwitchingProtocols {
				return nil
			}
			body, err := io.ReadAll(res.Body)
			if err != nil {
				return err
			}
			body = bytes.ReplaceAll(body, []byte(secret), []byte("[REDACTED]"))
			body = bytes.ReplaceAll(body, []byte(strings.Trim(strconv.Quote(secret), `"`)), []byte("[REDACTED]"))
			res.Body = io.NopCloser(bytes.NewReader(body))
			res.ContentLength = -1
			res.Header.Del("Content-Length")
			for _, values := range res.Header {
				for i := range values {
					values[i] = strings.ReplaceAll(values[i], secret, "[REDACTED]")
				}
			}
			return nil
		},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !permitted(hit{origin: hostport, Method: r.Method, Target: r.RequestURI}) {
			n.refuse(w, r, host)
			return
		}
		row := audit.Row{Event: audit.EventProxyStarted, Host: host, Port: number, Method: r.Method,
			Path: r.URL.EscapedPath(), Fields: map[string]any{"request_id": audit.NewID()}}
		n.write(row)
		row.Event, row.Decision = audit.EventProxyProxied, audit.DecisionProxied
		defer n.write(row)
		proxy.ServeHTTP(w, r)
	})
}
