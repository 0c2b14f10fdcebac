package serve

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/ca"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/config"
	"github.com/ALRubinger/aileron/internal/session"
	"github.com/ALRubinger/aileron/internal/unixsocket"
	"github.com/ALRubinger/aileron/proxy/upstream"
	"github.com/ALRubinger/aileron/spec/catalog"
	"github.com/ALRubinger/aileron/spec/store"
)

const (
	testSecret  = "ghp_0123456789abcdefABCDEF"
	otherSecret = "ghp_ABCDEFabcdef9876543210"
)

// world is a served session, and api.github.com as a stub that shows what it got.
type world struct {
	dir, home, grants, public, health string
	log                               *logged
	cancel                            context.CancelFunc
	ended                             chan error
	stream                            chan string // what GET /rate_limit responds, until it is closed

	mu  sync.Mutex
	got []string // Authorization of requests
}

// logged is the log of a session.
type logged struct {
	mu    sync.Mutex
	text  bytes.Buffer
	ready chan struct{}
	once  sync.Once
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if bytes.Contains(p, []byte(`"msg":"ready"`)) {
		l.once.Do(func() { close(l.ready) })
	}
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// newWorld makes what a session needs, and grants nothing.
func newWorld(t *testing.T) *world {
	t.Helper()
	base := must.ShortDir(t)
	w := &world{dir: filepath.Join(base, "run"), home: filepath.Join(base, "home"), grants: filepath.Join(base, "grants"),
		health: filepath.Join(base, "health"), stream: make(chan string)}
	w.public = filepath.Join(w.dir, "public")
	must.Do(t, os.MkdirAll(w.home, 0o700))
	return w
}

// grant writes grants.toml with the catalogue's connector for GitHub.
func (w *world) grant(t *testing.T, more string) {
	t.Helper()
	e, _ := catalog.Find("github")
	w.write(t, "grants.toml", fmt.Sprintf("[[connector]]\ncatalog = \"github\"\nhash = %q\n%s\n",
		must.Get(store.ReadFS(e.Files))(t).Hash, more))
}

// write puts a file in the place of another, as programs that write grants do.
func (w *world) write(t *testing.T, name, text string) {
	t.Helper()
	must.Do(t, os.MkdirAll(w.grants, 0o700))
	path := filepath.Join(w.grants, name)
	must.Do(t, os.WriteFile(path+".new", []byte(text), 0o600))
	must.Do(t, os.Rename(path+".new", path))
}

// options returns those of a session of this world.
func (w *world) options(t *testing.T) Options {
	t.Helper()
	authority := must.Get(ca.NewSession(ca.Options{Session: "stub"}))(t)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority.RootPEM())
	leaf := must.Get(authority.Leaf("api.github.com"))(t)
	stub := httptest.NewUnstartedServer(http.HandlerFunc(w.serveStub))
	stub.TLS = &tls.Config{Certificates: []tls.Certificate{*leaf}}
	stub.StartTLS()
	t.Cleanup(stub.Close)
	w.log = &logged{ready: make(chan struct{})}
	at := netip.MustParseAddrPort(stub.Listener.Addr().String())
	return Options{Dir: w.dir, Grants: w.grants, Health: "unix:" + w.health,
		Log: slog.New(slog.NewJSONHandler(w.log, nil)),
		Session: session.Options{Home: w.home, Version: "test",
			Upstream: upstream.Options{Roots: roots, Resolve: map[string]netip.AddrPort{"api.github.com:443": at}}}}
}

func (w *world) serveStub(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	w.got = append(w.got, r.Header.Get("Authorization"))
	w.mu.Unlock()
	rw.Header().Set("Content-Type", "text/plain")
	if r.URL.Path == "/rate_limit" {
		for text := range w.stream {
			_, _ = io.WriteString(rw, text)
			_ = http.NewResponseController(rw).Flush()
		}
		return
	}
	fmt.Fprintf(rw, "you sent %s", r.Header.Get("Authorization"))
}

// last returns the Authorization of the last request.
func (w *world) last() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.got) == 0 {
		return ""
	}
	return w.got[len(w.got)-1]
}

// start serves until the test ends, and waits until it is ready.
func (w *world) start(t *testing.T, o Options) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, o) }()
	w.cancel, w.ended = cancel, ended
	t.Cleanup(func() { _ = w.end() })
	select {
	case <-w.log.ready:
	case err := <-ended:
		ended <- err
		t.Fatalf("Run: %v\n%s", err, w.log)
	case <-time.After(must.Patience(time.Minute)):
		t.Fatalf("it is not ready\n%s", w.log)
	}
}

// end ends the session and returns the error of Run.
func (w *world) end() error {
	w.cancel()
	err := <-w.ended
	w.ended <- err
	return err
}

// client returns a client of the proxy in a sandbox.
func (w *world) client(t *testing.T) *http.Client {
	t.Helper()
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(must.Get(os.ReadFile(filepath.Join(w.public, "ca.pem")))(t)) {
		t.Fatal("ca.pem has no certificate")
	}
	proxy := must.Get(url.Parse(session.SealedProxy))(t)
	transport := &http.Transport{Proxy: http.ProxyURL(proxy), TLSClientConfig: &tls.Config{RootCAs: roots},
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return unixsocket.Dial(ctx, filepath.Join(w.dir, session.ProxySocket))
		}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// get requests a path of api.github.com, and returns the status and the body.
func (w *world) get(t *testing.T, c *http.Client, path string) (int, string) {
	t.Helper()
	res, err := fetch(t, c, "https://api.github.com"+path)
	if err != nil {
		t.Fatalf("GET %s: %v\n%s", path, err, w.log)
	}
	defer res.Body.Close()
	return res.StatusCode, string(must.Get(io.ReadAll(res.Body))(t))
}

func fetch(t *testing.T, c *http.Client, url string) (*http.Response, error) {
	t.Helper()
	return c.Do(must.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil))(t))
}

// probe returns what the listener of probes responds.
func (w *world) probe(t *testing.T, path string) (int, string) {
	t.Helper()
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return unixsocket.Dial(ctx, w.health) }}}
	res := must.Get(fetch(t, c, "http://health"+path))(t) //nolint:bodyclose // closed below
	defer res.Body.Close()
	return res.StatusCode, string(must.Get(io.ReadAll(res.Body))(t))
}

// waitFor waits for what only a defect keeps from coming.
func (w *world) waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(must.Patience(time.Minute)); !done(); {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("it did not happen: %s\n%s", what, w.log)
		}
	}
}

// rows returns the rows of the log, after the session has ended.
func (w *world) rows(t *testing.T) []audit.Row {
	t.Helper()
	log := must.Get(audit.OpenReader(filepath.Join(w.home, "audit.db")))(t)
	defer log.Close()
	return slices.DeleteFunc(must.Get(log.List(t.Context(), audit.Filter{}))(t),
		func(r audit.Row) bool { return r.Event == audit.EventCheckpoint })
}

// checkLeaks checks that no file of the session, and not its log, has a secret.
func (w *world) checkLeaks(t *testing.T) {
	t.Helper()
	texts := map[string]string{"the log": w.log.String()}
	for _, dir := range []string{w.dir, w.home} {
		must.Do(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				var raw []byte
				raw, err = os.ReadFile(path)
				texts[path] = string(raw)
			}
			return err
		}))
	}
	for name, text := range texts {
		for _, secret := range []string{testSecret, otherSecret} {
			if strings.Contains(text, secret) {
				t.Errorf("%s has a secret", name)
			}
		}
	}
}

func TestAServedAgentUsesItsCredential(t *testing.T) {
	w := newWorld(t)
	w.grant(t, `secret.file = "token"`)
	w.write(t, "token", testSecret)
	w.start(t, w.options(t))
	status, body := w.get(t, w.client(t), "/user")
	if status != 200 || w.last() != "Bearer "+testSecret || strings.Contains(body, testSecret) ||
		!strings.HasPrefix(body, "you sent Bearer ") {
		t.Errorf("GET /user = %d %q; upstream got %q", status, body, w.last())
	}
	if status, body := w.get(t, w.client(t), "/nothing/of/this"); status != 403 ||
		!strings.Contains(body, "operation_not_matched") {
		t.Errorf("a request that no operation allows = %d %q", status, body)
	}
	env := string(must.Get(os.ReadFile(filepath.Join(w.public, "env")))(t))
	for _, want := range []string{"export HTTPS_PROXY='http://127.0.0.1:3128'\n", "export GH_TOKEN='placeholder",
		"export SSL_CERT_FILE='/etc/aileron/proxy/bundle.pem'\n", "export AILERON_TOKEN='"} {
		if !strings.Contains(env, want) {
			t.Errorf("the environment does not have %q:\n%s", want, env)
		}
	}
	must.Do(t, Check(t.Context(), w.dir))
	if status, body := w.probe(t, "/healthz"); status != 200 || body != "ok\n" {
		t.Errorf("/healthz = %d %q", status, body)
	}
	var ready readiness
	status, body = w.probe(t, "/readyz")
	must.Do(t, json.Unmarshal([]byte(body), &ready))
	if status != 200 || !ready.Ready || ready.Connectors != 1 || ready.Credentials != 1 {
		t.Errorf("/readyz = %d %s", status, body)
	}
	_, body = w.probe(t, "/metrics")
	for _, want := range []string{
		`aileron_requests_total{decision="proxied",connector="github://alrubinger/aileron-connector-github"} 1`,
		`aileron_refusals_total{reason="operation_not_matched"} 1`, "aileron_redactions_total 1",
		`aileron_request_duration_seconds_count{decision="proxied"} 1`, "aileron_ready 1", "aileron_credentials 1",
	} {
		if !strings.Contains(body, want+"\n") {
			t.Errorf("/metrics does not have %q:\n%s", want, body)
		}
	}
	must.Do(t, w.end())
	if err := Check(t.Context(), w.dir); err == nil {
		t.Error("a session that has ended is said to serve")
	}
	rows := w.rows(t)
	first, last := rows[0], rows[len(rows)-1]
	if first.Event != audit.EventSessionStarted || first.Fields["mode"] != "serve" || first.Fields["sealed"] != true ||
		last.Event != audit.EventSessionEnded || last.Fields["cause"] != "cancelled" {
		t.Errorf("the first row is %+v, and the last one %+v", first, last)
	}
	w.checkLeaks(t)
}

// A warm pool: the session is ready before anything is granted, and changes take effect on open connections.
func TestGrantsArriveAfterTheStart(t *testing.T) {
	w := newWorld(t)
	w.start(t, w.options(t))
	if status, body := w.probe(t, "/readyz"); status != 200 {
		t.Errorf("/readyz without a grant = %d %s", status, body)
	}
	c := w.client(t)
	if status, body := w.get(t, c, "/user"); status != 403 || !strings.Contains(body, "host_not_allowed") {
		t.Errorf("without a grant GET /user = %d %q", status, body)
	}
	w.grant(t, `secret.file = "token"`)
	w.waitFor(t, "the connector is granted", func() bool {
		_, body := w.get(t, c, "/user")
		return strings.Contains(body, "binding_required")
	})
	for _, secret := range []string{testSecret, otherSecret} {
		w.write(t, "token", secret)
		w.waitFor(t, "the secret is used", func() bool {
			status, _ := w.get(t, c, "/user")
			return status == 200 && w.last() == "Bearer "+secret
		})
	}
	must.Do(t, os.Remove(filepath.Join(w.grants, "token")))
	w.waitFor(t, "the secret is not used any more", func() bool {
		status, body := w.get(t, c, "/user")
		return status == 403 && strings.Contains(body, "binding_required")
	})
	must.Do(t, os.Remove(filepath.Join(w.grants, "grants.toml")))
	w.waitFor(t, "nothing is granted any more", func() bool {
		_, body := w.get(t, c, "/user")
		return strings.Contains(body, "host_not_allowed")
	})
	must.Do(t, w.end())
	var changes []string
	for _, r := range w.rows(t) {
		if r.Event == audit.EventSessionGrantsChanged {
			changes = append(changes, fmt.Sprint(r.Fields["changes"]))
		}
	}
	if got := strings.Join(changes, " "); !strings.HasPrefix(got, "[installed] [bound] [rebound] [unbound] [removed]") {
		t.Errorf("the changes are %s", got)
	}
	w.checkLeaks(t)
}

// A session never goes on with another account, whatever its grants say later.
func TestAnotherIdentityIsRefused(t *testing.T) {
	w := newWorld(t)
	w.grant(t, "identity = \"one\"\nsecret.file = \"token\"")
	w.write(t, "token", testSecret)
	w.start(t, w.options(t))
	c := w.client(t)
	if status, body := w.get(t, c, "/user"); status != 200 {
		t.Errorf("GET /user = %d %q", status, body)
	}
	w.grant(t, "identity = \"two\"\nsecret.file = \"token\"")
	w.waitFor(t, "the other identity is refused", func() bool {
		status, body := w.get(t, c, "/user")
		return status == 403 && strings.Contains(body, "binding_required")
	})
}

func TestOneConnectorThatIsBrokenLeavesTheOthers(t *testing.T) {
	w := newWorld(t)
	w.grant(t, "secret.file = \"token\"\n[[connector]]\ncatalog = \"gitlab\"\n"+
		"hash = \"sha256:"+strings.Repeat("0", 64)+"\"")
	w.write(t, "token", testSecret)
	w.start(t, w.options(t))
	if status, _ := w.get(t, w.client(t), "/user"); status != 200 {
		t.Errorf("GET /user = %d\n%s", status, w.log)
	}
	must.Do(t, w.end())
	failed := 0
	for _, r := range w.rows(t) {
		if r.Event == audit.EventConnectorVerifyFailed {
			failed++
		}
	}
	if failed != 1 {
		t.Errorf("%d rows of a connector that failed its verification, want 1", failed)
	}
}

// A program prints the secret: the first request waits for it, and it is obtained anew when the service refuses it.
func TestAProgramPrintsTheSecret(t *testing.T) {
	w := newWorld(t)
	w.write(t, "token", testSecret)
	w.grant(t, fmt.Sprintf("secret.exec = [\"/bin/cat\", %q]", filepath.Join(w.grants, "token")))
	w.start(t, w.options(t))
	status, body := w.get(t, w.client(t), "/user")
	if status != 200 || w.last() != "Bearer "+testSecret || strings.Contains(body, testSecret) {
		t.Errorf("GET /user = %d %q; upstream got %q\n%s", status, body, w.last(), w.log)
	}
	must.Do(t, w.end())
	events := ""
	for _, r := range w.rows(t) {
		if r.Binding != "" && strings.HasPrefix(string(r.Event), "binding.") {
			events += string(r.Event) + " "
		}
	}
	if events != "binding.refresh_started binding.refreshed " {
		t.Errorf("the events are %s", events)
	}
	w.checkLeaks(t)
}

func TestAProgramThatFailsIsADenial(t *testing.T) {
	w := newWorld(t)
	w.grant(t, `secret.exec = ["/bin/sh", "-c", "echo `+testSecret+`; exit 3"]`)
	w.start(t, w.options(t))
	status, body := w.get(t, w.client(t), "/user")
	if status == 200 || !strings.Contains(body, "token_not_renewed") || w.last() != "" {
		t.Errorf("GET /user = %d %q", status, body)
	}
	if !strings.Contains(w.log.String(), "exit status 3") {
		t.Errorf("the log does not say why:\n%s", w.log)
	}
	must.Do(t, w.end())
	w.checkLeaks(t)
}

// A second process does not take the sockets of the first, and replaces those of one that was killed.
func TestOneProcessServesADirectory(t *testing.T) {
	w := newWorld(t)
	must.Do(t, os.MkdirAll(w.dir, 0o711))
	for _, name := range []string{session.ProxySocket, session.RedirectSocket} { // as a killed process leaves them
		l := must.Get(net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: filepath.Join(w.dir, name)}))(t)
		l.SetUnlinkOnClose(false)
		must.Do(t, l.Close())
	}
	o := w.options(t)
	w.start(t, o)
	second := newWorld(t).options(t)
	second.Dir = o.Dir
	short, cancel := context.WithTimeout(t.Context(), must.Patience(10*time.Second))
	defer cancel()
	if err := Run(short, second); err == nil || !strings.Contains(err.Error(), "another aileron serve does") {
		t.Errorf("a second Run: %v", err)
	}
	must.Do(t, Check(t.Context(), w.dir))
	must.Do(t, w.end())
	must.Do(t, os.WriteFile(filepath.Join(w.dir, session.ProxySocket), nil, 0o600))
	if err := Run(short, w.options(t)); err == nil || !strings.Contains(err.Error(), "something else") {
		t.Errorf("Run with a file in the place of a socket: %v", err)
	}
}

// A stream that is under way ends with its last byte, new requests are refused, and the log is complete.
func TestADrainLetsStreamsEnd(t *testing.T) {
	w := newWorld(t)
	w.grant(t, `secret.file = "token"`)
	w.write(t, "token", testSecret)
	w.start(t, w.options(t))
	c := w.client(t)
	began := make(chan *http.Response)
	go func() {
		res, err := c.Get("https://api.github.com/rate_limit") //nolint:bodyclose // closed below
		if err != nil {
			t.Error(err)
		}
		began <- res
	}()
	w.stream <- "first "
	res := <-began
	defer res.Body.Close()
	w.cancel()
	w.waitFor(t, "the session drains", func() bool {
		status, body := w.probe(t, "/readyz")
		return status == 503 && strings.Contains(body, `"draining"`)
	})
	w.stream <- "last"
	close(w.stream)
	if body := must.Get(io.ReadAll(res.Body))(t); string(body) != "first last" {
		t.Errorf("the stream is %q", body)
	}
	must.Do(t, w.end())
	rows := w.rows(t)
	if n := len(rows); rows[n-1].Event != audit.EventSessionEnded || rows[n-2].Event != audit.EventProxyProxied {
		t.Errorf("the last rows are %s and %s", rows[n-2].Event, rows[n-1].Event)
	}
}

// A stream without an end does not keep the session from ending.
func TestADrainIsBounded(t *testing.T) {
	w := newWorld(t)
	w.grant(t, `secret.file = "token"`)
	w.write(t, "token", testSecret)
	o := w.options(t)
	o.Session.Config.Limits.DrainTimeout = config.Duration(50 * time.Millisecond)
	w.start(t, o)
	began := make(chan *http.Response)
	c := w.client(t)
	go func() {
		res, err := c.Get("https://api.github.com/rate_limit") //nolint:bodyclose // closed below
		if err != nil {
			t.Error(err)
		}
		began <- res
	}()
	w.stream <- "first"
	res := <-began
	defer res.Body.Close()
	defer close(w.stream)
	must.Do(t, w.end())
	if body, err := io.ReadAll(res.Body); err == nil {
		t.Errorf("a stream that was cut ends as if it were whole: %q", body)
	}
	rows := w.rows(t)
	n := len(rows)
	if rows[n-1].Event != audit.EventSessionEnded || rows[n-2].Reason != "response_not_delivered" {
		t.Errorf("the last rows are %s %s and %s", rows[n-2].Event, rows[n-2].Reason, rows[n-1].Event)
	}
}

func TestLinesAreLogged(t *testing.T) {
	var out bytes.Buffer
	l := Lines(slog.New(slog.NewJSONHandler(&out, nil)))
	for _, part := range []string{"aileron: one\nhint: t", "wo\n", "\n", strings.Repeat("x", 2*maxLine)} {
		_ = must.Get(l.Write([]byte(part)))(t)
	}
	for _, want := range []string{`"msg":"one"`, `"msg":"hint: two"`, `"msg":"xxxx`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the log does not have %s", want)
		}
	}
}
