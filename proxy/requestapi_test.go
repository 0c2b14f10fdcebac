package proxy

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/spec"
)

// carried is a request as both doors carry it.
type carried struct {
	operation, method, url string
	fields                 []string // "Name: value"
	body                   string
}

// boundary sends it to the endpoint, and returns the status and the body of the response.
func (w *world) boundary(c carried) (int, string) {
	w.t.Helper()
	return w.post(requestsPath, must.Get(c.encode("github://acme/calls", "calls"))(w.t))
}

// encode returns the request as the endpoint takes it.
func (c carried) encode(fqn, tool string) (string, error) {
	fields := map[string][]string{}
	for _, f := range c.fields {
		name, value, _ := strings.Cut(f, ": ")
		fields[name] = append(fields[name], value)
	}
	text, err := json.Marshal(map[string]any{"connector_fqn": fqn, "tool": tool,
		"operation": c.operation, "method": c.method, "upstream_url": c.url, "headers": fields,
		"body_base64": base64.StdEncoding.EncodeToString([]byte(c.body))})
	return string(text), err
}

func (w *world) post(path, body string) (int, string) {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, "http://"+w.addr+path, strings.NewReader(body))
	must.Do(w.t, err)
	req.Header.Set("Authorization", "Bearer "+testToken)
	req.Close = true
	res := must.Get(http.DefaultTransport.RoundTrip(req))(w.t)
	defer res.Body.Close()
	got := must.Get(io.ReadAll(res.Body))(w.t)
	return res.StatusCode, string(got)
}

// onWire sends it through the proxy: in a tunnel to api.good.example if the URL has its authority or host names another
// for the tunnel, else in absolute form.
func (w *world) onWire(c carried) (int, string) {
	w.t.Helper()
	target, tunnelled := strings.CutPrefix(c.url, "https://api.good.example")
	lines := []string{}
	if !strings.Contains(strings.ToLower(strings.Join(c.fields, "\n")), "host: ") {
		_, named, _ := strings.Cut(c.url, "://")
		named = named[strings.Index(named, "@")+1:]
		lines = append(lines, "Host: "+named[:strings.IndexByte(named, '/')])
	}
	lines = append(lines, c.fields...)
	if c.body != "" {
		lines = append(lines, fmt.Sprintf("Content-Length: %d", len(c.body)))
	}
	var conn net.Conn
	if tunnelled && strings.HasPrefix(target, "/") {
		conn = w.tunnel("api.good.example")
	} else {
		var err error
		conn, err = net.Dial("tcp", w.addr)
		must.Do(w.t, err)
		target = c.url
		lines = append(lines, "Proxy-Authorization: Basic "+base64.StdEncoding.EncodeToString([]byte("x:"+testToken)))
	}
	defer conn.Close()
	must.Do(w.t, conn.SetDeadline(time.Now().Add(testPatience)))
	_, err := io.WriteString(conn, c.method+" "+target+" HTTP/1.1\r\n"+strings.Join(lines, "\r\n")+
		"\r\nConnection: close\r\n\r\n"+c.body)
	must.Do(w.t, err)
	res := must.Get(http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: c.method}))(w.t)
	defer res.Body.Close()
	got := must.Get(io.ReadAll(res.Body))(w.t)
	return res.StatusCode, string(got)
}

// What the proxy denies is denied here with the same status, class and reason, and neither sends anything.
func TestBothDoorsDenyTheSame(t *testing.T) {
	const at = "https://api.good.example/v1/things/"
	long := strings.Repeat("x", 70<<10)
	w := newCalls(t, func(*Config) {}, hello)
	for name, c := range map[string]carried{
		"userinfo":                   {"get", "GET", "http://user:pw@api.good.example/v1/things/7", nil, ""},
		"dot segments":               {"get", "GET", at + "../things/7", nil, ""},
		"escaped dots":               {"get", "GET", at + "%2e%2e/x", nil, ""},
		"an escaped slash":           {"get", "GET", at + "a%2fb", nil, ""},
		"a backslash":                {"get", "GET", at + `a\b`, nil, ""},
		"a double escape":            {"get", "GET", at + "a%252fb", nil, ""},
		"a path parameter":           {"get", "GET", at + "..;x", nil, ""},
		"a long path":                {"get", "GET", at + strings.Repeat("x", 5000), nil, ""},
		"a long target":              {"get", "GET", at + "7?q=" + strings.Repeat("x", 17<<10), nil, ""},
		"a fragment":                 {"get", "GET", at + "7#x", nil, ""},
		"a byte that is not ASCII":   {"get", "GET", at + "ü", nil, ""},
		"a blank":                    {"get", "GET", at + "7 x", nil, ""},
		"an empty segment":           {"get", "GET", "https://api.good.example//v1/things/7", nil, ""},
		"clear text":                 {"get", "GET", "http://api.good.example:443/v1/things/7", nil, ""},
		"port 80":                    {"get", "GET", "http://api.good.example/v1/things/7", nil, ""},
		"another host":               {"get", "GET", "http://evil.example/v1/things/7", nil, ""},
		"an address":                 {"get", "GET", "http://127.0.0.1/v1/things/7", nil, ""},
		"another scheme":             {"get", "GET", "ftp://api.good.example/v1/things/7", nil, ""},
		"no operation":               {"get", "GET", "https://api.good.example/admin", nil, ""},
		"another method":             {"get", "PATCH", at + "7", nil, ""},
		"TRACE":                      {"get", "TRACE", at + "7", nil, ""},
		"a method that is no token":  {"get", "GE(T", at + "7", nil, ""},
		"a method in lower case":     {"get", "get", at + "7", nil, ""},
		"an undeclared query":        {"get", "GET", at + "7?other=1", nil, ""},
		"a query with a semicolon":   {"get", "GET", at + "7?q=1;other=2", nil, ""},
		"a broken escape":            {"get", "GET", at + "7?q%=1", nil, ""},
		"a value that is not listed": {"get", "GET", at + "7?state=closed", nil, ""},
		"an approval":                {"drop", "DELETE", at + "7", nil, ""},
		"a body on GET":              {"get", "GET", at + "7", nil, "hi"},
		"a Host":                     {"get", "GET", at + "7", []string{"Host: evil.example"}, ""},
		"the Host of another port":   {"get", "GET", at + "7", []string{"Host: api.good.example:8443"}, ""},
		"two Hosts": {"get", "GET", at + "7", []string{"Host: api.good.example", "Host: a.example"},
			""},
		"two Hosts by case": {"get", "GET", at + "7", []string{"Host: api.good.example", "hOST: evil.example"},
			""},
		"an empty Host":          {"get", "GET", at + "7", []string{"Host: "}, ""},
		"a length beside a body": {"make", "POST", "https://api.good.example/v1/things", []string{"Content-Length: 1"}, "{}"},
		"a length of letters":    {"make", "POST", "https://api.good.example/v1/things", []string{"Content-Length: x"}, ""},
		"chunks beside a body": {"make", "POST", "https://api.good.example/v1/things", []string{"Transfer-Encoding: chunked"},
			"{}"},
		"a transfer coding":   {"get", "GET", at + "7", []string{"Transfer-Encoding: gzip"}, ""},
		"an expectation":      {"get", "GET", at + "7", []string{"Expect: x"}, ""},
		"a name with a blank": {"get", "GET", at + "7", []string{"X Evil: 1"}, ""},
		"a name that is none": {"get", "GET", at + "7", []string{"X(Evil: 1"}, ""},
		"a NUL in a value":    {"get", "GET", at + "7", []string{"X-Evil: a\x00b"}, ""},
		"a CR in a value":     {"get", "GET", at + "7", []string{"X-Evil: a\rb"}, ""},
		"a LF in a value":     {"get", "GET", at + "7", []string{"X-Evil: a\nX-More: b"}, ""},
		"a large head":        {"get", "GET", at + "7", []string{"X-Long: " + long}, ""},
		"many fields":         {"get", "GET", at + "7", many(300), ""},
		"an upgrade":          {"get", "GET", at + "7", []string{"Upgrade: websocket", "Connection: Upgrade"}, ""},
		"an upgrade of a host": {"open", "GET", "http://plain.good.example:443/v1/open", []string{"Upgrade: x",
			"Connection: upgrade"}, ""},
	} {
		wireStatus, onWire := w.onWire(c)
		wireClass, wireReason := reason(t, onWire)
		status, body := w.boundary(c)
		class, why := reason(t, body)
		if status != wireStatus || class != wireClass || why != wireReason || status < 400 {
			t.Errorf("%s: %d %s %s: %s\nand on the wire %d %s %s: %s", name, status, class, why, body, wireStatus, wireClass,
				wireReason, onWire)
		}
		row := w.last()
		if row.Source != audit.SourceRequestBoundary || row.Decision != audit.DecisionRejected || row.Status != status ||
			row.Reason != string(why) || row.Binding != "" || !strings.Contains(body, row.ID) {
			t.Errorf("%s: the row is %+v", name, row)
		}
	}
	if n := len(w.requests()); n != 0 {
		t.Errorf("the upstream got %d requests", n)
	}
}

func many(n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprintf("X-%d: 1", i))
	}
	return list
}

// What the proxy sends is sent here too, and no more: the credential is the session's, and what a box adds to it ends.
func TestBothDoorsSendTheSame(t *testing.T) {
	w := newCalls(t, func(*Config) {}, func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "text/plain")
		_, _ = io.WriteString(rw, "you sent "+r.Header.Get("Authorization"))
	})
	strip := []string{"Authorization: Bearer mine", "X-Api-Key: mine", "Cookie: a=b", "X-HTTP-Method-Override: DELETE",
		"X-Forwarded-Host: evil.example", "X-Original-URL: /admin", "Proxy-Authorization: Basic eDp5", "Te: trailers",
		"Keep-Alive: 5", "Range: bytes=1-2", "Accept-Encoding: gzip", "Idempotency-Key: 1", "Host: api.good.example",
		"Accept: text/plain", "If-None-Match: \"x\"", "User-Agent: curl/8", "Expect: 100-continue", "Forwarded: for=x"}
	for _, c := range []carried{
		{"get", "GET", "https://api.good.example/v1/things/a%20b?q=x%26y&q=", strip, ""},
		{"get", "GET", "https://api.good.example/v1/things/7?", nil, ""},
		{"get", "GET", "https://API.good.example/v1/things/7", nil, ""},
		{"make", "POST", "https://api.good.example/v1/things", []string{"Content-Type: text/plain"}, "\x00\xff{"},
		{"make", "POST", "https://api.good.example:443/v1/things", nil, ""},
	} {
		w.seen, w.bodies = nil, nil
		status, body := w.boundary(c)
		row := w.last()
		c.url = strings.ReplaceAll(strings.ReplaceAll(c.url, "API", "api"), ":443", "")
		wireStatus, onWire := w.onWire(c)
		if status != 200 || wireStatus != 200 || len(w.seen) != 2 {
			t.Fatalf("%s: %d %s, and on the wire %d %s", c.url, status, body, wireStatus, onWire)
		}
		a, b := w.seen[0], w.seen[1]
		a.Header.Del("Connection")
		if a.Method != b.Method || a.RequestURI != b.RequestURI || a.Host != b.Host || w.bodies[0] != w.bodies[1] ||
			!reflect.DeepEqual(a.Header, b.Header) || a.Header.Get("Authorization") != "Bearer "+testSecret {
			t.Errorf("it sends %s %s %v %q\nand on the wire %s %s %v %q", a.Method, a.RequestURI, a.Header, w.bodies[0],
				b.Method, b.RequestURI, b.Header, w.bodies[1])
		}
		var r result
		if err := json.Unmarshal([]byte(body), &r); err != nil || r.AuditID != row.ID || r.Body != onWire ||
			r.Operation != c.operation || strings.Contains(body, testSecret) {
			t.Errorf("%s: %s, %v; want %s", c.url, body, err, onWire)
		}
		wired := w.last()
		if row.Source != audit.SourceRequestBoundary || row.Event != audit.EventProxyProxied || row.Redactions != 1 ||
			!reflect.DeepEqual(row.Fields["dropped_headers"], wired.Fields["dropped_headers"]) || row.Path != wired.Path {
			t.Errorf("the row is %+v\nand on the wire %+v", row, wired)
		}
	}
}

// What is no request, or claims to be another operation, is refused before anything is sent.
func TestARequestIsTheOperationThatItNames(t *testing.T) {
	w := newCalls(t, func(c *Config) { c.Passthrough = true }, hello)
	body := func(more string) string {
		return `{"connector_fqn":"github://acme/calls","tool":"calls","operation":"get","method":"GET",` +
			`"upstream_url":"https://api.good.example/v1/things/7"` + more + `}`
	}
	named := func(old, new string) string { return strings.Replace(body(""), old, new, 1) }
	for text, want := range map[string]Reason{
		named("things/7", "things/mine"):                              ReasonNotMatched,
		named(`"get"`, `"mine"`):                                      ReasonNotMatched,
		named(`"get"`, `"none"`):                                      ReasonNotMatched,
		named("acme/calls", "acme/other"):                             ReasonNotMatched,
		named("api.good.example", "other.example"):                    ReasonNotMatched, // passed through on the wire
		named("https://api.good.example", "http://"+APIHost):          ReasonNotMatched,
		named("https://api.good.example/v1/things/7", "/v1/things/7"): ReasonMalformed,
		named("https://api.good.example/v1/things/7", ""):             ReasonMalformed,
		body(`,"headers":{"a":"1","a":"2"}`):                          ReasonArguments,
		body(`,"method":"GET"`):                                       ReasonArguments,
		body(`,"headers":["a"]`):                                      ReasonArguments,
		body(`,"headers":{"a":1}`):                                    ReasonArguments,
		body(`,"headers":{"a":["1",[]]}`):                             ReasonArguments,
		body(`,"headers":{"a:b":"1"}`):                                ReasonMalformed,
		body(`,"headers":{"Host:x":"1"}`):                             ReasonMalformed,
		body(`,"headers":{"":"1"}`):                                   ReasonMalformed,
		body(`,"headers":{"a":"1\r\nb: 2"}`):                          ReasonMalformed,
		body(`,"headers":{"a\r\nb":"1"}`):                             ReasonMalformed,
		body(`,"headers":{"Content-Length":"5"}`):                     ReasonMalformed,
		body(`,"headers":{"Transfer-Encoding":"chunked"}`):            ReasonMalformed,
		named(`"GET"`, `"GET /v1/things/8 HTTP/1.1\r\nX: "`):          ReasonMalformed,
		named(`"GET"`, `"CONNECT"`):                                   ReasonMalformed,
		named(`"GET"`, `""`):                                          ReasonMalformed,
		named(`"GET"`, `null`):                                        ReasonArguments,
		named("things/7", `things/7\r\nX-Evil: 1`):                    ReasonMalformed,
		body(`,"body_base64":"a"`):                                    ReasonArguments,
		body(`,"body_base64":"aGk"`):                                  ReasonArguments,
		body(`,"body_base64":"aG\nk="`):                               ReasonArguments,
		body(`,"body_base64":"aGl="`):                                 ReasonArguments, // not zero behind the end
		body(`,"body_base64":7`):                                      ReasonArguments,
		body(`,"body":"x"`):                                           ReasonArguments,
		body(`,"Method":"DELETE"`):                                    ReasonArguments,
		`[]`:                                                          ReasonArguments,
		``:                                                            ReasonArguments,
		body(`,"body_base64":"` + strings.Repeat("A", 10<<20) + `"`):  ReasonTooLarge,
	} {
		_, got := w.post(requestsPath, text)
		if _, why := reason(t, got); why != want {
			t.Errorf("%.300s: %s, want %s", text, got, want)
		}
		if row := w.last(); row.Source != audit.SourceRequestBoundary || row.Reason != string(want) {
			t.Errorf("%.300s: the row is %+v", text, row)
		}
	}
	if n := len(w.requests()); n != 0 {
		t.Errorf("the upstream got %d requests", n)
	}
	for _, ask := range []string{"GET " + requestsPath, "PUT " + requestsPath, "GET " + operationsPath} {
		method, path, _ := strings.Cut(ask, " ")
		req := must.Get(http.NewRequestWithContext(t.Context(), method, "http://"+w.addr+path, nil))(t)
		req.Header.Set("Authorization", "Bearer "+testToken)
		res := must.Get(http.DefaultTransport.RoundTrip(req))(t)
		_ = res.Body.Close()
		if res.StatusCode != 405 {
			t.Errorf("%s: %d", ask, res.StatusCode)
		}
	}
}

// A WebSocket needs a connection of its own, so an operation that declares one is refused here.
func TestACarriedRequestStaysOneOfHTTP(t *testing.T) {
	w := newCalls(t, func(*Config) {}, hello)
	c, err := spec.Load([]byte(callsManifest), []byte(strings.Replace(callsSpec, `"credential":"bearer",
   "inputs":[{"name":"id"`, `"credential":"bearer","upgrade":"websocket",
   "inputs":[{"name":"id"`, 1)))
	must.Do(t, err)
	index := must.Get(spec.NewIndex([]*spec.Connector{c}))(t)
	old := w.plane.grants.Load()
	w.plane.SetGrants(&Grants{Index: index, Scrub: old.Scrub, Bound: old.Bound})
	status, body := w.boundary(carried{"get", "GET", "https://api.good.example/v1/things/7", []string{"Upgrade: websocket",
		"Connection: Upgrade", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=="}, ""})
	if _, why := reason(t, body); status != 426 || why != ReasonUpgrade || !strings.Contains(body, "inside a tunnel") {
		t.Errorf("%d %s", status, body)
	}
	if n := len(w.requests()); n != 0 {
		t.Errorf("the upstream got %d requests", n)
	}
}
