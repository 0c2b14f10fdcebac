package auditpage

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/hint"
)

// visitor is a client with the cookie and the key, as a page has them.
type visitor struct {
	t      *testing.T
	page   *Page
	cookie *http.Cookie
	key    string
	said   chan string
	ended  chan error
}

// rowsOf writes a log of n rows.
func rowsOf(t *testing.T, n int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "audit.db")
	addRows(t, path, n)
	return path
}

func addRows(t *testing.T, path string, n int) {
	t.Helper()
	l := must.Get(audit.Open(path, audit.Options{}))(t)
	for i := range n {
		r := audit.Row{Event: audit.EventProxyProxied, Decision: audit.DecisionProxied, Method: "GET", Host: "a.example",
			Port: 443, Path: fmt.Sprintf("/%d", i), Status: 200}
		if i%3 == 0 {
			r.Event, r.Decision, r.Reason = audit.EventProxyRejected, audit.DecisionRejected, "host_not_allowed"
		}
		must.Get(l.Append(t.Context(), r))(t)
	}
	must.Do(t, l.Close())
}

// visit serves a log, and enters the page.
func visit(t *testing.T, opts Options) *visitor {
	t.Helper()
	v := &visitor{t: t, said: make(chan string, 100), ended: make(chan error, 1)}
	opts.Report = func(m string) { v.said <- m }
	var err error
	if v.page, err = Listen(t.Context(), opts); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	go func() { v.ended <- v.page.Serve(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-v.ended; err != nil {
			t.Error(err)
		}
	})
	_, token, _ := strings.Cut(v.page.URL(), "#")
	res, body := v.do("POST", "/session", token, func(r *http.Request) { r.Header.Set("Origin", v.page.origin) })
	if res.StatusCode != 200 {
		t.Fatalf("the link has status %d %s", res.StatusCode, body)
	}
	var entered map[string]string
	must.Do(t, json.Unmarshal([]byte(body), &entered))
	v.key, v.cookie = entered["key"], res.cookies[0]
	return v
}

// answered is the head of a response.
type answered struct {
	StatusCode int
	Header     http.Header
	cookies    []*http.Cookie
}

// do sends a request as the page would, changed by change.
func (v *visitor) do(method, path, body string, change func(*http.Request)) (answered, string) {
	v.t.Helper()
	r, err := http.NewRequestWithContext(v.t.Context(), method, v.page.origin+path, strings.NewReader(body))
	if err != nil {
		v.t.Fatal(err)
	}
	if v.cookie != nil {
		r.AddCookie(v.cookie)
		r.Header.Set(keyHeader, v.key)
	}
	if change != nil {
		change(r)
	}
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		v.t.Fatal(err)
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	return answered{res.StatusCode, res.Header, res.Cookies()}, string(got)
}

// get decodes the response to a query.
func get[T any](v *visitor, path string) (value T) {
	v.t.Helper()
	res, body := v.do("GET", path, "", nil)
	if res.StatusCode != 200 {
		v.t.Fatalf("%s responds %d %s", path, res.StatusCode, body)
	}
	if err := json.Unmarshal([]byte(body), &value); err != nil {
		v.t.Fatal(err)
	}
	return value
}

// A request that is not of the page gets the reason of its refusal, and no row.
func TestOnlyThePageGetsRows(t *testing.T) {
	v := visit(t, Options{Log: rowsOf(t, 9)})
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	for _, c := range []struct {
		name, method, path string
		change             func(*http.Request)
		status             int
		reason             string
	}{
		{"the page", "GET", "/api/rows", nil, 200, "a.example"},
		{"its own origin", "GET", "/api/rows", header("Sec-Fetch-Site", "same-origin"), 200, "a.example"},
		{"another name", "GET", "/api/rows", func(r *http.Request) { r.Host = "rebound.example" }, 403, "DNS rebinding"},
		{"localhost", "GET", "/", func(r *http.Request) { r.Host = "localhost:" + v.page.port() }, 403, "DNS rebinding"},
		{"another port in Host", "GET", "/", func(r *http.Request) { r.Host = "127.0.0.1:1" }, 403, "DNS rebinding"},
		{"another origin", "GET", "/api/rows", header("Origin", "http://127.0.0.1:1"), 403, "another web site"},
		{"several origins", "GET", "/api/rows", func(r *http.Request) {
			r.Header["Origin"] = []string{v.page.origin, "http://127.0.0.1:1"}
		}, 403, "another web site"},
		{"a sandboxed frame", "GET", "/api/rows", header("Origin", "null"), 403, "another web site"},
		{"another port of this host", "GET", "/api/rows", header("Sec-Fetch-Site", "same-site"), 403, "another web site"},
		{"another site", "GET", "/", header("Sec-Fetch-Site", "cross-site"), 403, "another web site"},
		{"no navigation", "GET", "/api/rows", header("Sec-Fetch-Site", "none"), 403, "another web site"},
		{"no cookie", "GET", "/api/rows", func(r *http.Request) { r.Header.Del("Cookie") }, 403, "link"},
		{"no key", "GET", "/api/rows", func(r *http.Request) { r.Header.Del(keyHeader) }, 403, "link"},
		{"another key", "GET", "/api/live", header(keyHeader, "x"), 403, "link"},
		{"a preflight", "OPTIONS", "/api/rows", nil, 405, "only reads"},
		{"a change", "DELETE", "/api/rows", nil, 405, "only reads"},
		{"a post", "POST", "/api/rows", header("Origin", v.page.origin), 405, "only reads"},
		{"a post without an origin", "POST", "/session", nil, 403, "Origin"},
		{"an export without a ticket", "GET", "/export/x", nil, 403, "not asked for"},
		{"a file outside", "GET", "/page.go", nil, 404, "no such file"},
	} {
		res, body := v.do(c.method, c.path, "", c.change)
		if res.StatusCode != c.status || !strings.Contains(body, c.reason) {
			t.Errorf("%s: %d %.200q, want %d %q", c.name, res.StatusCode, body, c.status, c.reason)
		}
		if got := res.Header.Get("Content-Security-Policy"); got != policy {
			t.Errorf("%s: the policy is %q", c.name, got)
		}
		for name := range res.Header {
			if strings.HasPrefix(name, "Access-Control") {
				t.Errorf("%s: the response has %s", c.name, name)
			}
		}
	}
	if c := v.cookie; !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Domain != "" || !c.Expires.IsZero() {
		t.Errorf("the cookie is %v", c)
	}
}

// The path of an export is in a browser's history: it opens nothing without the cookie, and nothing a second time.
func TestAnExportIsSavedOnce(t *testing.T) {
	v := visit(t, Options{Log: rowsOf(t, 1), Exports: []Export{{Name: "txt", Type: "text/plain",
		Write: func(_ context.Context, _ *audit.Log, _ audit.Filter, w io.Writer) error {
			_, err := io.WriteString(w, "the rows")
			return err
		}}}})
	path := get[map[string]string](v, "/api/ticket?format=txt")["path"]
	const refused = "not asked for by the page, or was saved already"
	for _, c := range []struct {
		name, method string
		change       func(*http.Request)
		status       int
		want         string
	}{
		{"without the cookie", "GET", func(r *http.Request) { r.Header.Del("Cookie") }, 403, refused},
		{"a request for the head", "HEAD", nil, 403, ""},
		{"the page", "GET", nil, 200, "the rows"},
		{"the same path again", "GET", nil, 403, refused},
	} {
		if res, body := v.do(c.method, path, "", c.change); res.StatusCode != c.status || !strings.Contains(body, c.want) {
			t.Errorf("%s: %d %q, want %d %q", c.name, res.StatusCode, body, c.status, c.want)
		}
	}
}

// A site whose requests are refused holds no connection: there is a bound on their number.
func TestARefusedRequestEndsItsConnection(t *testing.T) {
	v := visit(t, Options{Log: rowsOf(t, 1)})
	for range maxConnections {
		conn := must.Get(net.Dial("tcp", v.page.listener.Addr().String()))(t)
		defer conn.Close()
		must.Get(io.WriteString(conn, "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"))(t)
		text, err := io.ReadAll(conn) // until it is closed: a minute, if it is kept
		if err != nil || !strings.HasPrefix(string(text), "HTTP/1.1 403") || !strings.Contains(string(text),
			"\r\nConnection: close\r\n") {
			t.Fatalf("the response is %q, %v", text, err)
		}
	}
}

// A browser leaves out the port of the scheme.
func TestTheHostOfPort80HasNoPort(t *testing.T) {
	for address, want := range map[string]string{"127.0.0.1:80": "127.0.0.1", "[::1]:80": "[::1]",
		"127.0.0.1:8080": "127.0.0.1:8080", "[::1]:1080": "[::1]:1080"} {
		if got := authority(net.TCPAddrFromAddrPort(netip.MustParseAddrPort(address))); got != want {
			t.Errorf("the Host of %s is %s, want %s", address, got, want)
		}
	}
}

func TestALinkOpensThePageOnce(t *testing.T) {
	v := visit(t, Options{Log: rowsOf(t, 1)})
	_, token, _ := strings.Cut(v.page.URL(), "#")
	for _, again := range []string{token, "", "AAAA", strings.Repeat("A", 300)} {
		res, body := v.do("POST", "/session", again, func(r *http.Request) { r.Header.Set("Origin", v.page.origin) })
		if res.StatusCode != 403 || !strings.Contains(body, "used already") {
			t.Errorf("the token %.30q responds %d %q", again, res.StatusCode, body)
		}
	}
}

func TestOnlyALoopbackAddressIsServed(t *testing.T) {
	for _, address := range []string{"0.0.0.0:0", "192.0.2.1:80", "[::]:0", "localhost:0", "127.0.0.1", "[::1%lo]:0"} {
		_, err := Listen(t.Context(), Options{Address: address})
		if err == nil || !strings.Contains(err.Error(), "is not a loopback address") || hint.Of(err) == "" {
			t.Errorf("%s: %v", address, err)
		}
	}
	used, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer used.Close()
	_, err = Listen(t.Context(), Options{Address: used.Addr().String()})
	if err == nil || !strings.Contains(err.Error(), "address already in use") ||
		!strings.Contains(hint.Of(err), "--listen") {
		t.Errorf("a port in use: %v", err)
	}
}

// The chunks of a filter and their rows are the rows that the log selects.
func TestChunksLeadToEveryRow(t *testing.T) {
	v := visit(t, Options{Log: rowsOf(t, 1000)})
	_, body := v.do("GET", "/api/chunks?decision=rejected", "", nil)
	seqs, ended := []int64{}, false
	for line := range strings.Lines(body) {
		var step found
		must.Do(t, json.Unmarshal([]byte(line), &step))
		ended = step.Done
		for _, c := range step.Chunks {
			got := get[struct{ Rows []rowLine }](v, fmt.Sprintf("/api/rows?decision=rejected&through=%d&after=%d", c[0], c[1]-1))
			if int64(len(got.Rows)) != c[2] || c[2] > chunkRows {
				t.Errorf("the chunk %v has %d rows", c, len(got.Rows))
			}
			for _, r := range got.Rows {
				seqs = append(seqs, r.Seq)
			}
		}
	}
	if !ended || len(seqs) != 334 {
		t.Fatalf("%d rows are found, ended: %v", len(seqs), ended)
	}
	for i, seq := range seqs {
		if want := int64(1000 - 3*i); seq != want {
			t.Fatalf("row %d is %d, want %d", i, seq, want)
		}
	}
}

type rowLine = line

// Every filter of the page is one of the log: what it does not know would select all rows.
func TestEveryFilterSelects(t *testing.T) {
	v := visit(t, Options{Log: rowsOf(t, 4)})
	for _, name := range []string{"session", "host", "connector", "binding", "operation", "reason"} {
		got := get[struct{ Rows []rowLine }](v, "/api/rows?"+name+"=none")
		if len(got.Rows) != 0 {
			t.Errorf("%s=none selects %d rows", name, len(got.Rows))
		}
	}
}

// A stream reports new rows, and that the log is another one.
func TestAStreamReportsNewRows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.db")
	v := visit(t, Options{Log: path})
	r, _ := http.NewRequestWithContext(t.Context(), "GET", v.page.origin+"/api/live", nil)
	r.AddCookie(v.cookie)
	r.Header.Set(keyHeader, v.key)
	res, err := http.DefaultTransport.RoundTrip(r)
	must.Do(t, err)
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	next := func(want func(now) bool) (n now) {
		t.Helper()
		for lines.Scan() {
			n = now{}
			must.Do(t, json.Unmarshal(lines.Bytes(), &n))
			if want(n) {
				return n
			}
		}
		t.Fatalf("the stream ended after %+v: %v", n, lines.Err())
		return n
	}
	next(func(n now) bool { return strings.Contains(n.Message, "there is no audit log") })
	addRows(t, path, 5)
	first := next(func(n now) bool { return n.Newest == 5 && n.Oldest == 1 && n.Message == "" })
	addRows(t, path, 2)
	next(func(n now) bool { return n.Newest == 7 && n.Epoch == first.Epoch })
	other := rowsOf(t, 3)
	must.Do(t, os.Rename(other, path))
	for _, suffix := range []string{"-wal", "-shm"} {
		_ = os.Remove(path + suffix)
	}
	next(func(n now) bool { return n.Newest == 3 && n.Epoch != first.Epoch })
}

// A log that cannot be read is one line with what to do, on the page and for the person.
func TestALogThatCannotBeReadIsOneLine(t *testing.T) {
	path := rowsOf(t, 500)
	v := visit(t, Options{Log: path})
	get[map[string]any](v, "/api/rows")
	raw := must.Get(os.ReadFile(path))(t)
	for i := 4096; i < len(raw); i++ {
		raw[i] = 0xff
	}
	must.Do(t, os.Remove(path))
	must.Do(t, os.WriteFile(path, raw, 0o600))
	res, body := v.do("GET", "/api/rows", "", nil)
	var p problem
	if json.Unmarshal([]byte(body), &p) != nil || res.StatusCode != 503 ||
		!strings.Contains(p.Hint, "aileron audit recover") ||
		strings.Contains(p.Error, "\n") {
		t.Errorf("a damaged log responds %d %q", res.StatusCode, body)
	}
	for message := range v.said {
		if strings.Contains(message, "malformed") || strings.Contains(message, "damaged") {
			break
		}
	}
}

// A field of 10 MB is a few kilobytes on the page.
func TestALongFieldIsCut(t *testing.T) {
	path := rowsOf(t, 1)
	l, err := audit.Open(path, audit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("é\u202e", 5<<20/4)
	_, err = l.Append(t.Context(),
		audit.Row{Event: audit.EventProxyRejected, Decision: audit.DecisionRejected, Host: "a.example",
			Path: "/" + long, Reason: long, Fields: map[string]any{"note": long, long: "x"}})
	must.Do(t, errors.Join(err, l.Close()))
	v := visit(t, Options{Log: path})
	for _, query := range []string{"/api/rows", "/api/event?seq=2", "/api/counts"} {
		res, body := v.do("GET", query, "", nil)
		if res.StatusCode != 200 || len(body) > 256<<10 || strings.Contains(body, "\u202e") ||
			!strings.Contains(body, `\\u202e`) {
			t.Errorf("%s responds %d with %d bytes", query, res.StatusCode, len(body))
		}
	}
}

func TestTheServerEndsWhenNoPageIsOpen(t *testing.T) {
	page := must.Get(Listen(t.Context(), Options{Log: rowsOf(t, 1), Idle: 20 * time.Millisecond}))(t)
	if err := page.Serve(t.Context()); err != nil || t.Context().Err() != nil {
		t.Errorf("Serve = %v, %v", err, t.Context().Err())
	}
}

// An open stream is a page that is open.
func TestAnOpenPageKeepsTheServer(t *testing.T) {
	i := newIdle(time.Nanosecond)
	<-i.passed()
	i = newIdle(time.Hour)
	end := i.begin()
	if i.timer.Stop() {
		t.Error("the time runs while a request is under way")
	}
	end()
	if !i.timer.Stop() {
		t.Error("the time does not run after the last request")
	}
}

// A page tells by the turn that another file is at the log's path: its rows are others.
func TestAnotherFileIsAnotherTurn(t *testing.T) {
	path := rowsOf(t, 1)
	l := &logs{path: path}
	turn := func() int {
		t.Helper()
		o, done, err := l.open()
		must.Do(t, err)
		defer done()
		return o.turn
	}
	first := turn()
	l.drop()
	if again := turn(); again != first {
		t.Errorf("the same file is turn %d and then %d", first, again)
	}
	must.Do(t, os.Rename(rowsOf(t, 1), path))
	if other := turn(); other != first+1 {
		t.Errorf("behind turn %d, another file is turn %d", first, other)
	}
	l.drop()
}
