package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/ca"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/e2e/rowschema"
	"github.com/ALRubinger/aileron/proxy/approval"
	"github.com/ALRubinger/aileron/proxy/scrub"
	"github.com/ALRubinger/aileron/proxy/upstream"
	"github.com/ALRubinger/aileron/proxy/wire"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/vault"
)

const (
	testSecret = "S1-tok+en/0123456789=abcdefghij%klmnop"
	testToken  = "session-token-of-the-test"
)

const testManifest = `
[connector]
name = "github://acme/tracker"
version = "1.2.0"
[capabilities.network]
hosts = ["api.good.example", "q.good.example", "plain.good.example", "plain.good.example:80"]
[capabilities.credential]
kind = "bearer"
[provides]
intents = ["test"]
`

const testSpec = `{"schema_version":"aileron.connector.v1","connector":{"fqn":"github://acme/tracker",
   "version":"1.2.0"},"headers":["X-Declared","acme-*","session_id"],
"tools":[{"name":"tracker","operations":[
 {"name":"items","method":"GET","path":"/v1/items","hosts":["api.good.example"],"credential":"bearer",
   "idempotency":"idempotent","inputs":[{"name":"q"},{"name":"limit"}]},
 {"name":"create","method":"POST","path":"/v1/items","hosts":["api.good.example"],"credential":"bearer"},
 {"name":"item","method":"GET","path":"/v1/items/{id}","hosts":["api.good.example"],"credential":"bearer",
  "audit":[{"name":"id","source":"path.id"},{"name":"title","source":"response.body.title"},{"name":"owner",
   "source":"response.body.owner","redact":true}]},
 {"name":"file","method":"GET","path":"/v1/files/{name}","hosts":["api.good.example"],"credential":"bearer",
   "packed":true},
 {"name":"parts","method":"GET","path":"/v1/parts","hosts":["api.good.example"],"credential":"bearer","ranges":true},
 {"name":"echo","method":"GET","path":"/v1/echo","hosts":["api.good.example"],"credential":"bearer"},
 {"name":"live","method":"GET","path":"/v1/live","hosts":["api.good.example"],"credential":"bearer",
   "upgrade":"websocket"},
 {"name":"q","method":"GET","path":"/v1/items","hosts":["q.good.example"],"credential":{"kind":"bearer",
   "inject":{"in":"query","name":"api_key"}},"inputs":[{"name":"x"}]},
 {"name":"plain","hosts":["plain.good.example","plain.good.example:80"]}]}]}`

// NewFront returns what serves a plane. Package front imports this one, so story_test.go sets it, from outside.
var NewFront func(*Plane) func(ctx context.Context, l net.Listener, sealed, redirected bool) error

// NewPreviews returns what fetches the preview of a question; likewise.
var NewPreviews func(*Plane, *approval.Queue) (fetch func(ctx context.Context, id string), wait func())

// The endpoints of the session's API, and the forms of a response that a shell reads.
const (
	operationsPath = "/v1/connector-operations/run"
	actionsPath    = "/v1/actions/run"
	requestsPath   = "/v1/sandbox-proxy/requests"
	formShim       = "application/vnd.aileron.shim.v1"
	formShimJSON   = formShim + "+json"
)

// testPatience is as long as only a defect takes, on a busy machine too.
var testPatience = must.Patience(5 * time.Minute)

// world is a plane in front of a scripted origin, and a client behind it.
type world struct {
	t      testing.TB
	quiet  bool // the origin keeps nothing of what it sees
	unread bool // the origin leaves bodies to answer
	plane  *Plane
	serve  func(ctx context.Context, l net.Listener, sealed, redirected bool) error // of the plane's front
	log    *audit.Log
	addr   string // of the plane's door
	ca     *ca.Session
	client *http.Client

	originRoots *x509.CertPool
	listeners   []*seenListener

	mu     sync.Mutex
	seen   []*http.Request // by the origin
	bodies []string
	answer http.HandlerFunc
}

func newWorld(t testing.TB, answer http.HandlerFunc) *world {
	t.Helper()
	return newWorldOf(t, false, answer)
}

// newWorldOf is newWorld with an origin that may speak HTTP/2.
func newWorldOf(t testing.TB, h2 bool, answer http.HandlerFunc) *world {
	t.Helper()
	return newWorldWith(t, h2, func(*Config) {}, answer)
}

// newWorldWith is newWorldOf with a plane that set may change.
func newWorldWith(t testing.TB, h2 bool, set func(*Config), answer http.HandlerFunc) *world {
	t.Helper()
	w := &world{t: t, answer: answer}
	origin := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		var body []byte
		if !w.unread {
			body, _ = io.ReadAll(r.Body)
		}
		if !w.quiet {
			w.mu.Lock()
			w.seen = append(w.seen, r)
			w.bodies = append(w.bodies, string(body))
			w.mu.Unlock()
		}
		w.answer(rw, r)
	}))
	authority, err := ca.NewSession(ca.Options{Session: "origin"})
	must.Do(t, err)
	origin.TLS = &tls.Config{MinVersion: tls.VersionTLS12,
		GetCertificate: func(h *tls.ClientHelloInfo) (*tls.Certificate, error) { return authority.Leaf(h.ServerName) }}
	plain := httptest.NewServer(origin.Config.Handler)
	origin.EnableHTTP2 = h2
	origin.StartTLS()
	t.Cleanup(origin.Close)
	t.Cleanup(plain.Close)
	roots := x509.NewCertPool()
	roots.AddCert(authority.Root())
	w.originRoots = roots

	w.ca, err = ca.NewSession(ca.Options{Session: "test"})
	must.Do(t, err)
	w.log, err = audit.Open(filepath.Join(t.TempDir(), "audit.db"), audit.Options{Session: "01SESSION"})
	must.Do(t, err)
	at := netip.MustParseAddrPort(origin.Listener.Addr().String())
	// No time-out of the plane's is to end what a test waits for, unless it is what the test is about.
	const never = time.Hour
	cfg := Config{Session: "01SESSION", Token: testToken, CA: w.ca, Audit: w.log,
		Limits: Limits{Handshake: never,
			Wire: wire.Limits{Header: never, Idle: never, Stalled: never, Progress: never}},
		Upstream: upstream.Options{Dial: never, Stall: never, Idle: never, Roots: roots,
			Resolve: map[string]netip.AddrPort{
				"api.good.example:443": at, "q.good.example:443": at, "plain.good.example:443": at,
				"plain.good.example:80": netip.MustParseAddrPort(plain.Listener.Addr().String()),
				"other.example:443":     at, // reachable, and named by no connector
			}}}
	set(&cfg)
	_, measured := t.(*testing.B)
	cfg.Poison = !measured // the stories run on recycled exchanges
	w.plane, err = New(cfg)
	must.Do(t, err)
	w.serve = NewFront(w.plane)
	connector := must.Get(spec.Load([]byte(testManifest), []byte(testSpec)))(t)
	index := must.Get(spec.NewIndex([]*spec.Connector{connector}))(t)
	secret := must.Get(vault.NewSecret([]byte(testSecret)))(t)
	w.plane.SetGrants(&Grants{Index: index, Scrub: scrub.NewSet([]scrub.Credential{{Secret: []byte(testSecret)}}),
		Bound: map[spec.FQN]Bound{"github://acme/tracker": {Binding: "bearer/tracker/test",
			Credential: vault.Credential{Kind: "bearer", Secret: secret}}}})

	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	w.addr = l.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan struct{})
	seen := &seenListener{Listener: l}
	w.listeners = append(w.listeners, seen)
	go func() { defer close(served); _ = w.serve(ctx, seen, false, false) }()
	trusted := x509.NewCertPool()
	trusted.AddCert(w.ca.Root())
	proxyURL := &url.URL{Scheme: "http", Host: w.addr, User: url.UserPassword("x", testToken)}
	transport := &http.Transport{Proxy: http.ProxyURL(proxyURL),
		TLSClientConfig: &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}, DisableCompression: true}
	w.client = &http.Client{Transport: transport, Timeout: testPatience}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		cancel()
		<-served
		w.plane.Drain(context.Background())
		if !measured {
			rowschema.Log(t, w.log)
		}
		must.Do(t, w.log.Close())
	})
	return w
}

func (w *world) do(method, target, body string, header ...string) (*http.Response, string) {
	w.t.Helper()
	var from io.Reader
	if body != "" {
		from = strings.NewReader(body)
	}
	req := must.Get(http.NewRequestWithContext(w.t.Context(), method, target, from))(w.t)
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	res := must.Get(w.client.Do(req))(w.t)
	defer res.Body.Close()
	got := must.Get(io.ReadAll(res.Body))(w.t)
	return res, string(got)
}

func (w *world) rows() []audit.Row {
	w.t.Helper()
	rows := must.Get(w.log.List(context.Background(), audit.Filter{}))(w.t)
	return rows
}

// last returns the newest row.
func (w *world) last() audit.Row {
	w.t.Helper()
	rows := w.rows()
	if len(rows) == 0 {
		w.t.Fatal("there is no audit row")
	}
	return rows[len(rows)-1]
}

func (w *world) requests() []*http.Request {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen
}

// raw sends bytes inside a tunnel to host and returns all that comes back.
func (w *world) raw(host, data string) string {
	w.t.Helper()
	conn := w.tunnel(host)
	defer conn.Close()
	go func() { _, _ = io.WriteString(conn, data) }()
	got, _ := io.ReadAll(conn)
	return string(got)
}

func (w *world) tunnel(host string) *tls.Conn { return w.tunnelOf(host, "http/1.1") }

// tunnelOf opens a tunnel whose client asks for one protocol by ALPN.
func (w *world) tunnelOf(host, protocol string) *tls.Conn {
	w.t.Helper()
	conn := w.connect(host)
	trusted := x509.NewCertPool()
	trusted.AddCert(w.ca.Root())
	secure := tls.Client(conn, &tls.Config{ServerName: host, RootCAs: trusted, MinVersion: tls.VersionTLS12,
		NextProtos: []string{protocol}})
	must.Do(w.t, secure.Handshake())
	return secure
}

// trusted are the roots of a client that trusts the session.
func (w *world) trusted() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(w.ca.Root())
	return pool
}

// connect opens a tunnel.
func (w *world) connect(host string) net.Conn {
	w.t.Helper()
	raw := must.Get(net.Dial("tcp", w.addr))(w.t)
	conn := &sentConn{Conn: raw}
	_ = conn.SetDeadline(time.Now().Add(testPatience))
	fmt.Fprintf(conn, "CONNECT %s:443 HTTP/1.1\r\nHost: %s:443\r\nProxy-Authorization: Basic %s\r\n\r\n", host, host,
		base64.StdEncoding.EncodeToString([]byte("x:"+testToken)))
	res := must.Get(http.ReadResponse(bufio.NewReaderSize(conn, 1), &http.Request{Method: http.MethodConnect}))(w.t)
	if res.StatusCode != 200 {
		w.t.Fatalf("CONNECT %s: %d", host, res.StatusCode)
	}
	return conn
}

func hello(rw http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(rw, "hello") }

// reason is details.reason of an error answer.
func reason(t testing.TB, body string) (class string, why Reason) {
	t.Helper()
	var e struct {
		Error struct {
			Class, Message, Requested string
			Granted                   []string
			AuditID                   string `json:"audit_id"`
			Details                   struct{ Reason string }
		}
	}
	if err := json.Unmarshal([]byte(body), &e); err != nil {
		t.Fatalf("not an error object: %q", body)
	}
	if e.Error.Message == "" || e.Error.AuditID == "" || e.Error.Granted == nil {
		t.Errorf("an error without message, granted or audit id: %q", body)
	}
	return e.Error.Class, Reason(e.Error.Details.Reason)
}

func (w *world) eventually(holds func() bool) {
	w.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(testPatience); !holds(); <-tick.C {
		if time.Now().After(end) {
			w.t.Errorf("it did not come to be within %v", testPatience)
			return
		}
	}
}

// untilRows waits for rows that f finds enough.
func (w *world) untilRows(f func([]audit.Row) bool) []audit.Row {
	w.t.Helper()
	for deadline := time.Now().Add(testPatience); time.Now().Before(deadline); <-time.After(5 * time.Millisecond) {
		if rows := w.rows(); f(rows) {
			return rows
		}
	}
	w.t.Fatalf("rows: %+v", w.rows())
	return nil
}

// say sends one request to w's listener as it is.
func (w *world) say(request string) *http.Response {
	w.t.Helper()
	c := w.sends(request)
	res := must.Get(http.ReadResponse(bufio.NewReader(c), nil))(w.t)
	w.t.Cleanup(func() { _ = res.Body.Close() })
	return res
}

// sends opens a connection to w's listener and sends what is given.
func (w *world) sends(request string) net.Conn {
	w.t.Helper()
	c := must.Get(net.Dial("tcp", w.addr))(w.t)
	w.t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(testPatience))
	must.Get(fmt.Fprint(c, request))(w.t)
	return c
}
