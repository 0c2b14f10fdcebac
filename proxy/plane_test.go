package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/ca"
	"github.com/ALRubinger/aileron/proxy/scrub"
	"github.com/ALRubinger/aileron/proxy/upstream"
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
 {"name":"echo","method":"GET","path":"/v1/echo","hosts":["api.good.example"],"credential":"bearer"},
 {"name":"live","method":"GET","path":"/v1/live","hosts":["api.good.example"],"credential":"bearer",
   "upgrade":"websocket"},
 {"name":"q","method":"GET","path":"/v1/items","hosts":["q.good.example"],"credential":{"kind":"bearer",
   "inject":{"in":"query","name":"api_key"}},"inputs":[{"name":"x"}]},
 {"name":"plain","hosts":["plain.good.example","plain.good.example:80"]}]}]}`

// world is a plane in front of a scripted origin, and a client behind it.
type world struct {
	t      testing.TB
	quiet  bool // the origin keeps nothing of what it sees
	plane  *Plane
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
		body, _ := io.ReadAll(r.Body)
		if !w.quiet {
			w.mu.Lock()
			w.seen = append(w.seen, r)
			w.bodies = append(w.bodies, string(body))
			w.mu.Unlock()
		}
		w.answer(rw, r)
	}))
	authority, err := ca.NewSession(ca.Options{Session: "origin"})
	must(t, err)
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
	must(t, err)
	w.log, err = audit.Open(filepath.Join(t.TempDir(), "audit.db"), audit.Options{})
	must(t, err)
	at := netip.MustParseAddrPort(origin.Listener.Addr().String())
	cfg := Config{Session: "01SESSION", Token: testToken, CA: w.ca, Audit: w.log,
		Upstream: upstream.Options{Roots: roots, Resolve: map[string]netip.AddrPort{
			"api.good.example:443": at, "q.good.example:443": at, "plain.good.example:443": at,
			"plain.good.example:80": netip.MustParseAddrPort(plain.Listener.Addr().String()),
			"other.example:443":     at, // reachable, and named by no connector
		}}}
	set(&cfg)
	w.plane, err = New(cfg)
	must(t, err)
	connector, err := spec.Load([]byte(testManifest), []byte(testSpec))
	must(t, err)
	index, err := spec.NewIndex([]*spec.Connector{connector})
	must(t, err)
	secret, err := vault.NewSecret([]byte(testSecret))
	must(t, err)
	w.plane.SetGrants(&Grants{Index: index, Scrub: scrub.NewSet([]scrub.Needle{{Secret: []byte(testSecret)}}),
		Bound: map[spec.FQN]Bound{"github://acme/tracker": {Binding: "bearer/tracker/test",
			Credential: vault.Credential{Kind: "bearer", Secret: secret}}}})

	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	w.addr = l.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan struct{})
	seen := &seenListener{Listener: l}
	w.listeners = append(w.listeners, seen)
	go func() { defer close(served); _ = w.plane.Serve(ctx, seen, Listener{}) }()
	trusted := x509.NewCertPool()
	trusted.AddCert(w.ca.Root())
	proxyURL := &url.URL{Scheme: "http", Host: w.addr, User: url.UserPassword("x", testToken)}
	transport := &http.Transport{Proxy: http.ProxyURL(proxyURL),
		TLSClientConfig: &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}, DisableCompression: true}
	w.client = &http.Client{Transport: transport, Timeout: time.Minute}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		cancel()
		<-served
		w.plane.Drain(context.Background())
		must(t, w.log.Close())
	})
	return w
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (w *world) do(method, target, body string, header ...string) (*http.Response, string) {
	w.t.Helper()
	var from io.Reader
	if body != "" {
		from = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(w.t.Context(), method, target, from)
	must(w.t, err)
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	res, err := w.client.Do(req)
	must(w.t, err)
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	must(w.t, err)
	return res, string(got)
}

func (w *world) rows() []audit.Row {
	w.t.Helper()
	rows, err := w.log.List(context.Background(), audit.Filter{})
	must(w.t, err)
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
	must(w.t, secure.Handshake())
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
	raw, err := net.Dial("tcp", w.addr)
	must(w.t, err)
	conn := &sentConn{Conn: raw}
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	fmt.Fprintf(conn, "CONNECT %s:443 HTTP/1.1\r\nHost: %s:443\r\nProxy-Authorization: Basic %s\r\n\r\n", host, host,
		base64.StdEncoding.EncodeToString([]byte("x:"+testToken)))
	res, err := http.ReadResponse(bufio.NewReaderSize(conn, 1), &http.Request{Method: http.MethodConnect})
	must(w.t, err)
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

func TestAnAllowedRequestGetsTheCredentialAndTwoRows(t *testing.T) {
	w := newWorld(t, hello)
	res, body := w.do("GET", "https://api.good.example/v1/items?q=QCANARY", "", "Authorization", "Bearer ATTACKER",
		"X-Api-Key", "ATTACKER", "Cookie", "a=ATTACKER")
	if res.StatusCode != 200 || body != "hello" {
		t.Fatalf("got %d %q", res.StatusCode, body)
	}
	got := w.requests()[0]
	if auth := got.Header["Authorization"]; len(auth) != 1 || auth[0] != "Bearer "+testSecret {
		t.Errorf("the origin saw Authorization %q", auth)
	}
	if got.Host != "api.good.example" || got.RequestURI != "/v1/items?q=QCANARY" ||
		got.Header.Get("Accept-Encoding") != "identity" {
		t.Errorf("the origin saw %s %s %v", got.Host, got.RequestURI, got.Header)
	}
	if raw := fmt.Sprint(got.Header); strings.Contains(raw, "ATTACKER") {
		t.Errorf("the box's own credentials left: %s", raw)
	}
	rows := w.rows()
	if len(rows) != 2 || rows[0].Event != audit.EventProxyStarted || rows[1].Event != audit.EventProxyProxied ||
		rows[0].Fields["request_id"] != rows[1].Fields["request_id"] || rows[1].Binding != "bearer/tracker/test" ||
		rows[1].Source != audit.SourceConnectTLS || rows[1].Decision != "proxied" || rows[1].Status != 200 ||
		rows[1].ResponseBytes != 5 || rows[1].Path != "/v1/items" {
		t.Errorf("rows: %+v", rows)
	}
	if text := fmt.Sprintf("%+v", rows); strings.Contains(text, "CANARY") || strings.Contains(text, testSecret) {
		t.Errorf("a row holds a query or a secret: %s", text)
	}
}

func TestTheIntentIsCommittedBeforeTheUpstreamSeesAByte(t *testing.T) {
	var w *world
	w = newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		if rows := w.rows(); len(rows) != 1 || rows[0].Event != audit.EventProxyStarted {
			t.Errorf("rows while the origin answers: %+v", rows)
		}
		hello(rw, r)
	})
	w.do("GET", "https://api.good.example/v1/items", "")
}

type brokenRecorder struct{}

func (brokenRecorder) AppendSoon(context.Context, audit.Row) error { return errors.New("disk full") }

func (brokenRecorder) Append(context.Context, audit.Row) (audit.Row, error) {
	return audit.Row{}, errors.New("disk full")
}

func TestNothingLeavesThatCannotBeRecorded(t *testing.T) {
	w := newWorld(t, hello)
	w.plane.cfg.Audit = brokenRecorder{}
	res, body := w.do("GET", "https://api.good.example/v1/items", "")
	if res.StatusCode != 503 || !strings.Contains(body, string(reasonAudit)) || len(w.requests()) != 0 {
		t.Errorf("got %d %s, %d requests left", res.StatusCode, body, len(w.requests()))
	}
}

// fullDisk is a log that commits the first row and then no other, and holds
// those that nothing waits for.
type fullDisk struct {
	Recorder
	mu        sync.Mutex
	committed []audit.Row
	held      []audit.Row
	settled   int // how many were held when that was waited for
}

func (d *fullDisk) Settle(context.Context) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.settled = len(d.held)
}

func (d *fullDisk) Append(_ context.Context, r audit.Row) (audit.Row, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.committed) > 0 {
		return r, errors.New("disk full")
	}
	d.committed = append(d.committed, r)
	return r, nil
}

func (d *fullDisk) AppendSoon(_ context.Context, r audit.Row) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.held = append(d.held, r)
	return nil
}

// A session that ends in order has nothing that could find such an intent.
func TestAFailureAfterTheIntentIsNotLostOnAFullDisk(t *testing.T) {
	w := newWorld(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // else the kernel may reset the connection
		panic(http.ErrAbortHandler)
	})
	log := &fullDisk{}
	w.plane.cfg.Audit = log
	res, body := w.do("POST", "https://api.good.example/v1/items", "{}")
	if len(log.committed) != 1 || len(log.held) != 1 {
		t.Fatalf("committed: %+v\nheld: %+v\nwant the intent and its outcome; the client got %d %s", log.committed,
			log.held, res.StatusCode, body)
	}
	intent, outcome := log.committed[0], log.held[0]
	if intent.Event != audit.EventProxyStarted || outcome.Event != audit.EventProxyRejected || outcome.Status != 502 ||
		Reason(outcome.Reason) != reasonUpstreamEnd || outcome.Fields["request_id"] != intent.Fields["request_id"] {
		t.Errorf("the intent is %+v, its outcome %+v", intent, outcome)
	}
	if log.settled != 1 {
		t.Error("the client is told of a row that may not be committed yet")
	}
	if res.StatusCode != 502 || !strings.Contains(body, outcome.ID) || res.Header.Get("X-Aileron-Audit-Id") != outcome.ID {
		t.Errorf("the client got %d %s", res.StatusCode, body)
	}
}

func TestWhatNoOperationNamesIsRefusedInsideTheTunnel(t *testing.T) {
	w := newWorld(t, hello)
	for _, c := range []struct {
		method, url, class string
		reason             Reason
	}{
		{"GET", "https://other.example/", "capability_denied", "host_not_allowed"},
		{"GET", "https://api.good.example/admin", "capability_denied", "operation_not_matched"},
		{"PUT", "https://api.good.example/v1/items", "capability_denied", "operation_not_matched"},
		{"GET", "https://api.good.example/v1/items?admin=1", "capability_denied", "query_not_declared"},
		{"GET", "https://api.good.example/v1/items?access_token=x", "capability_denied", "query_not_declared"},
		{"GET", "https://127.0.0.1/", "capability_denied", "host_not_allowed"},
	} {
		res, body := w.do(c.method, c.url, "")
		class, why := reason(t, body)
		if res.StatusCode != 403 || class != c.class || why != c.reason ||
			res.Header.Get("X-Aileron-Audit-Id") != w.last().ID || Reason(w.last().Reason) != c.reason {
			t.Errorf("%s %s = %d %s %s, row %s %s", c.method, c.url, res.StatusCode, class, why, w.last().ID, w.last().Reason)
		}
	}
	if n := len(w.requests()); n != 0 {
		t.Errorf("%d requests left", n)
	}
}

func TestAnEchoedSecretDoesNotComeBack(t *testing.T) {
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		auth := r.Header.Get("Authorization")
		rw.Header().Set("X-Echo", auth)
		rw.Header().Set("Set-Cookie", "sid=fresh")
		rw.Header().Set("Content-Md5", "x")
		rw.Header().Set("Trailer", "X-Trailer")
		rw.WriteHeader(http.StatusEarlyHints)
		rw.WriteHeader(200)
		for _, c := range []byte("body " + auth + " end") {
			_, _ = rw.Write([]byte{c})
			rw.(http.Flusher).Flush()
		}
		rw.Header().Set("X-Trailer", auth)
	})
	res, body := w.do("GET", "https://api.good.example/v1/echo", "")
	want := "body Bearer " + strings.Repeat("*", len(testSecret)) + " end"
	if body != want || res.Header.Get("X-Echo") != "Bearer "+strings.Repeat("*", len(testSecret)) {
		t.Errorf("got %q, X-Echo %q", body, res.Header.Get("X-Echo"))
	}
	if all := fmt.Sprint(res.Header, res.Trailer); strings.Contains(all, "fresh") || strings.Contains(all, "Md5") ||
		strings.Contains(all, "0123456789") {
		t.Errorf("headers: %s", all)
	}
	if row := w.last(); row.Redactions != 3 {
		t.Errorf("redactions %d, want 3", row.Redactions)
	}
}

func TestWhatCannotBeSearchedIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		set    func(http.ResponseWriter)
		reason Reason
	}{
		"gzip": {func(w http.ResponseWriter) { w.Header().Set("Content-Encoding", "gzip") }, reasonEncoding},
		"utf-16": {func(w http.ResponseWriter) { w.Header().Set("Content-Type", "text/html; charset=utf-16le") },
			reasonCharset},
		"partial": {func(w http.ResponseWriter) { w.WriteHeader(http.StatusPartialContent) }, reasonPartial},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) { c.set(rw); hello(rw, r) })
			res, body := w.do("GET", "https://api.good.example/v1/echo", "", "Range", "bytes=0-1")
			class, why := reason(t, body)
			if res.StatusCode != 502 || class != "response_unsafe" || why != c.reason ||
				w.last().Event != audit.EventProxyRejected {
				t.Errorf("got %d %s %s", res.StatusCode, class, why)
			}
			if w.requests()[0].Header.Get("Range") != "" {
				t.Error("the Range left")
			}
		})
	}
}

func TestADifferentHostInsideATunnelIsRefused(t *testing.T) {
	w := newWorld(t, hello)
	for _, c := range []struct{ head, status string }{
		{"GET /v1/items HTTP/1.1\r\nHost: other.example\r\n", "421"},
		{"GET /v1/items HTTP/1.1\r\nHost: q.good.example\r\n", "421"},
		{"GET /v1/items HTTP/1.1\r\nHost: api.good.example:8443\r\n", "421"},
		{"GET https://other.example/v1/items HTTP/1.1\r\nHost: api.good.example\r\n", "421"},
		{"GET http://api.good.example/v1/items HTTP/1.1\r\nHost: api.good.example\r\n", "400"},
		{"GET /v1/items HTTP/1.1\r\nHost: api.good.example.\r\n", "421"},
		{"GET /v1/../admin HTTP/1.1\r\nHost: api.good.example\r\n", "400"},
		{"GET /v1/%2e%2e/admin HTTP/1.1\r\nHost: api.good.example\r\n", "400"},
		{"GET //v1/items HTTP/1.1\r\nHost: api.good.example\r\n", "400"},
		{"GET /v1/items/a%2fb HTTP/1.1\r\nHost: api.good.example\r\n", "400"},
		{"GET /v1/items;x=1 HTTP/1.1\r\nHost: api.good.example\r\n", "400"},
		{"GET /v1/items HTTP/1.1\r\nHost: api.good.example\r\nContent-Length: 2\r\n", "400"},
		{"CONNECT other.example:443 HTTP/1.1\r\nHost: other.example:443\r\n", "400"},
		{"GET /v1/items HTTP/1.1\r\nHost: api.good.example\r\nHost: api.good.example\r\n", "400"},
		{"OPTIONS * HTTP/1.1\r\nHost: api.good.example\r\n", "400"},
	} {
		before := len(w.rows())
		got := w.raw("api.good.example", c.head+"Connection: close\r\n\r\n")
		if !strings.HasPrefix(got, "HTTP/1.1 "+c.status) {
			t.Errorf("%q = %.60q, want %s", c.head, got, c.status)
		}
		if n := len(w.rows()) - before; n != 1 {
			t.Errorf("%q left %d rows, want 1", c.head, n)
		}
	}
	if n := len(w.requests()); n != 0 {
		t.Errorf("%d requests left", n)
	}
	if got := w.raw("api.good.example",
		"GET /v1/items HTTP/1.1\r\nHost: API.Good.EXAMPLE\r\nConnection: close\r\n\r\n"); !strings.HasPrefix(got,
		"HTTP/1.1 200") {
		t.Errorf("a host in capitals: %.60q", got)
	}
}

func TestAQueryCredentialIsThereOnce(t *testing.T) {
	w := newWorld(t, hello)
	w.do("GET", "https://q.good.example/v1/items?x=1&api_key=ATTACKER", "")
	if got := w.requests()[0].URL.Query(); len(got["api_key"]) != 1 || got.Get("api_key") != testSecret ||
		got.Get("x") != "1" {
		t.Errorf("the origin saw %v", got)
	}
}

func TestAMissingTokenIsAskedForAndWrittenDown(t *testing.T) {
	w := newWorld(t, hello)
	for _, auth := range []string{"", "Proxy-Authorization: Basic eDp3cm9uZw==\r\n",
		"Proxy-Authorization: Bearer wrong\r\n"} {
		before := len(w.rows())
		conn, err := net.Dial("tcp", w.addr)
		must(t, err)
		fmt.Fprintf(conn, "CONNECT api.good.example:443 HTTP/1.1\r\nHost: api.good.example:443\r\n%s\r\n", auth)
		res, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: http.MethodGet})
		must(t, err)
		if res.StatusCode != 407 || res.Header.Get("Proxy-Authenticate") == "" || len(w.rows()) != before+1 ||
			Reason(w.last().Reason) != reasonToken {
			t.Errorf("%q: %d, %d rows", auth, res.StatusCode, len(w.rows())-before)
		}
		conn.Close()
	}
}

func TestAnUnboundOrLockedCredentialSendsNothing(t *testing.T) {
	w := newWorld(t, hello)
	g := *w.plane.grants.Load()
	fqn := slices.Collect(maps.Keys(g.Bound))[0]
	for want, grants := range map[Reason]*Grants{
		reasonUnbound:             {},
		reasonVaultLocked:         {Locked: true},
		reasonVaultUnread:         {VaultUnreadable: true},
		ReasonConnectorUnreadable: {Bound: g.Bound, Unreadable: map[spec.FQN]Reason{fqn: ReasonConnectorUnreadable}},
		ReasonHomeMissing:         {Bound: g.Bound, Unreadable: map[spec.FQN]Reason{fqn: ReasonHomeMissing}},
		ReasonStoreUnreadable:     {Bound: g.Bound, Unreadable: map[spec.FQN]Reason{fqn: ReasonStoreUnreadable}},
	} {
		grants.Index, grants.Scrub = g.Index, g.Scrub
		w.plane.SetGrants(grants)
		_, body := w.do("GET", "https://api.good.example/v1/items", "")
		if _, why := reason(t, body); why != want || len(w.requests()) != 0 || Reason(w.last().Reason) != want {
			t.Errorf("got %s, want %s; %d requests left", why, want, len(w.requests()))
		}
	}
}

func TestAnUploadStreamsAndIsCounted(t *testing.T) {
	w := newWorld(t, hello)
	body := strings.Repeat("0123456789", 1<<18)
	res, _ := w.do("POST", "https://api.good.example/v1/items", body, "Idempotency-Key", "k", "X-Http-Method-Override",
		"DELETE")
	if res.StatusCode != 200 || w.bodies[0] != body || w.last().RequestBytes != int64(len(body)) {
		t.Errorf("got %d, %d bytes, row %d", res.StatusCode, len(w.bodies[0]), w.last().RequestBytes)
	}
	if h := w.requests()[0].Header; h.Get("Idempotency-Key") != "" || h.Get("X-Http-Method-Override") != "" {
		t.Errorf("headers left: %v", h)
	}
}

func TestDeclaredFieldsReachTheRow(t *testing.T) {
	w := newWorld(t, func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(rw, `{"title":"A title","owner":"someone","other":"unseen"}`)
	})
	w.do("GET", "https://api.good.example/v1/items/42", "")
	f := w.last().Fields
	if f["id"] != "42" || f["title"] != "A title" || !strings.HasPrefix(fmt.Sprint(f["owner"]), "sha256:") ||
		strings.Contains(fmt.Sprint(f), "unseen") {
		t.Errorf("fields: %v", f)
	}
}

func TestPlainHTTPIsForwardedWhereASpecAllowsIt(t *testing.T) {
	w := newWorld(t, hello)
	if res, body := w.do("GET", "http://plain.good.example/x", ""); res.StatusCode != 200 || body != "hello" ||
		res.ContentLength != 5 || w.last().Source != audit.SourceForwardHTTP {
		t.Errorf("got %d %q of %d bytes from %s", res.StatusCode, body, res.ContentLength, w.last().Source)
	}
	if res, body := w.do("GET", "http://api.good.example/v1/items", ""); res.StatusCode != 403 || len(w.requests()) != 1 {
		t.Errorf("in clear: %d %q", res.StatusCode, body)
	}
}

func TestTheAPITellsWhatIsAllowedAndNothingMore(t *testing.T) {
	w := newWorld(t, hello)
	ask := func(path string, header ...string) (int, string) {
		req, _ := http.NewRequestWithContext(t.Context(), "GET", "http://"+w.addr+path, nil)
		for i := 0; i+1 < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
		must(t, err)
		defer res.Body.Close()
		body, _ := io.ReadAll(res.Body)
		return res.StatusCode, string(body)
	}
	token := []string{"Authorization", "Bearer " + testToken}
	if code, body := ask("/v1/session", token...); code != 200 || !strings.Contains(body, `"operation":"items"`) ||
		strings.Contains(body, testSecret) {
		t.Errorf("session: %d %s", code, body)
	}
	for path, want := range map[string]int{"/v1/audit": 403, "/v1/vault/unlock": 403, "/v1/nothing": 404,
		"/debug/pprof": 404, "/healthz": 200} {
		if code, body := ask(path, token...); code != want {
			t.Errorf("%s: %d %s, want %d", path, code, body, want)
		}
	}
	if code, _ := ask("/v1/session"); code != 401 {
		t.Errorf("without a token: %d", code)
	}
	if code, _ := ask("/v1/session", append(token, "Origin", "https://evil.example")...); code != 403 {
		t.Errorf("from a web page: %d", code)
	}
}

func TestAPassthroughSessionForwardsUnnamedHostsOnly(t *testing.T) {
	w := newWorld(t, hello)
	w.plane.cfg.Passthrough = true
	if res, _ := w.do("GET", "https://other.example/any/path", "", "Authorization",
		"Bearer its-own"); res.StatusCode != 200 || w.last().Event != audit.EventSandboxPassthrough {
		t.Errorf("got %d, %s", res.StatusCode, w.last().Event)
	}
	if got := w.requests()[0].Header.Get("Authorization"); got != "Bearer its-own" {
		t.Errorf("passed with %q", got)
	}
	if res, _ := w.do("GET", "https://api.good.example/admin", ""); res.StatusCode != 403 {
		t.Errorf("a named host was passed: %d", res.StatusCode)
	}
}

func TestAStreamLeavesEventByEvent(t *testing.T) {
	next := make(chan struct{})
	w := newWorld(t, func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "text/event-stream")
		for i := range 5 {
			fmt.Fprintf(rw, "data: %d\n\n", i)
			rw.(http.Flusher).Flush()
			select {
			case <-next:
			case <-time.After(time.Minute):
				return
			}
		}
	})
	req, _ := http.NewRequestWithContext(t.Context(), "GET", "https://api.good.example/v1/echo", nil)
	res, err := w.client.Do(req)
	must(t, err)
	defer res.Body.Close()
	lines := bufio.NewReader(res.Body)
	for i := range 5 {
		line, err := lines.ReadString('\n')
		if err != nil || line != fmt.Sprintf("data: %d\n", i) {
			t.Fatalf("event %d: %q, %v", i, line, err)
		}
		_, _ = lines.ReadString('\n')
		select {
		case next <- struct{}{}:
		case <-time.After(time.Minute):
		}
	}
}

func TestATruncatedAnswerIsNoCleanEnd(t *testing.T) {
	w := newWorld(t, func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(rw, "half")
		rw.(http.Flusher).Flush()
		conn, _, _ := rw.(http.Hijacker).Hijack()
		conn.Close()
	})
	req, _ := http.NewRequestWithContext(t.Context(), "GET", "https://api.good.example/v1/echo", nil)
	res, err := w.client.Do(req)
	must(t, err)
	if got, err := io.ReadAll(res.Body); err == nil {
		t.Errorf("the client took %q for the whole", got)
	}
	res.Body.Close()
	if row := w.last(); Reason(row.Reason) != reasonTruncated {
		t.Errorf("row reason %q", row.Reason)
	}
}

func TestAnUndeclaredUpgradeIsDenied(t *testing.T) {
	w := newWorld(t, hello)
	got := w.raw("api.good.example",
		"GET /v1/echo HTTP/1.1\r\nHost: api.good.example\r\nConnection: Upgrade\r\nUpgrade: "+
			"websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: x\r\n\r\nGET / HTTP/1.0\r\n\r\n")
	if !strings.HasPrefix(got, "HTTP/1.1 426") || len(w.requests()) != 0 {
		t.Errorf("got %.80q, %d requests left", got, len(w.requests()))
	}
}

func TestGoproxyNeverDialsOrVerifiesForUs(t *testing.T) {
	w := newWorld(t, hello)
	f := w.plane.newProxyHandler(t.Context(), Listener{})
	if _, err := f.gp.Tr.DialContext(t.Context(), "tcp", "127.0.0.1:1"); !errors.Is(err, errNeverDial) {
		t.Errorf("Tr dials: %v", err)
	}
	if _, err := f.gp.ConnectDial("tcp", "127.0.0.1:1"); !errors.Is(err, errNeverDial) {
		t.Errorf("ConnectDial dials: %v", err)
	}
	if f.gp.Tr.Proxy != nil {
		t.Error("Tr reads the environment")
	}
}

func TestATunnelOfHTTP10NeedsNoHost(t *testing.T) {
	w := newWorld(t, hello)
	conn, err := net.Dial("tcp", w.addr)
	must(t, err)
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	fmt.Fprintf(conn, "CONNECT api.good.example:443 HTTP/1.0\r\nProxy-Authorization: Bearer %s\r\n\r\n", testToken)
	res, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: http.MethodConnect})
	must(t, err)
	if res.StatusCode != 200 {
		t.Errorf("got %d", res.StatusCode)
	}
}

func TestABurstOfConnectionsEndsItselfAndNotTheSession(t *testing.T) {
	w := newWorld(t, hello)
	for len(w.plane.slots) < cap(w.plane.slots) {
		w.plane.slots <- struct{}{}
	}
	req, err := http.NewRequestWithContext(t.Context(), "GET", "http://plain.good.example/x", nil)
	must(t, err)
	res, err := w.client.Do(req)
	must(t, err)
	res.Body.Close()
	if res.StatusCode != 429 {
		t.Errorf("over the cap: %d, want 429", res.StatusCode)
	}
	w.client.CloseIdleConnections()
	for len(w.plane.slots) > 0 {
		<-w.plane.slots
	}
	if res, _ := w.do("GET", "https://api.good.example/v1/items", ""); res.StatusCode != 200 {
		t.Errorf("after the burst: %d, want 200", res.StatusCode)
	}
}
