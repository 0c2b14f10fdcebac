package proxy

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/proxy/wire"
	"github.com/ALRubinger/aileron/spec"
)

const callsManifest = `
[connector]
name = "github://acme/calls"
version = "1.0.0"
[capabilities.network]
hosts = ["api.good.example", "plain.good.example"]
[capabilities.credential]
kind = "bearer"
[provides]
intents = ["test"]
`

const callsSpec = `{"schema_version":"aileron.connector.v1","connector":{"fqn":"github://acme/calls","version":"1.0.0"},
"tools":[{"name":"calls","operations":[
 {"name":"get","method":"GET","path":"/v1/things/{id}","hosts":["api.good.example"],"credential":"bearer",
   "inputs":[{"name":"id","type":"string","required":true},{"name":"q","type":"string"},
     {"name":"state","type":"string","values":["open"]}]},
 {"name":"mine","method":"GET","path":"/v1/things/mine","hosts":["api.good.example"],"credential":"bearer","inputs":[]},
 {"name":"make","method":"POST","path":"/v1/things","hosts":["api.good.example"],"credential":"bearer",
   "inputs":[{"name":"title","type":"string","required":true},{"name":"n","type":"integer"}]},
 {"name":"order","method":"POST","path":"/v1/orders","hosts":["api.good.example"],"credential":"bearer","body":"form",
   "inputs":[{"name":"email","type":"string"},{"name":"metadata","type":"object","style":"deepObject"}]},
 {"name":"drop","method":"DELETE","path":"/v1/things/{id}","hosts":["api.good.example"],"credential":"bearer",
   "approval":"required"},
 {"name":"open","method":"GET","path":"/v1/open","hosts":["plain.good.example"]}]}]}`

// newCalls is a world with the operations of callsSpec, all of them bound.
func newCalls(t testing.TB, set func(*Config), answer http.HandlerFunc) *world {
	t.Helper()
	w := newWorldWith(t, false, set, answer)
	c := must.Get(spec.Load([]byte(callsManifest), []byte(callsSpec)))(t)
	index := must.Get(spec.NewIndex([]*spec.Connector{c}))(t)
	old := w.plane.grants.Load()
	w.plane.SetGrants(&Grants{Index: index, Scrub: old.Scrub, Bound: map[spec.FQN]Bound{
		"github://acme/calls": old.Bound["github://acme/tracker"]}})
	return w
}

// call runs an operation by name, and returns the status and the body of the response.
func (w *world) call(body string) (int, string) { return w.callAt(operationsPath, body) }

// callAt is call at another endpoint.
func (w *world) callAt(path, body string) (int, string) {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, "http://"+w.addr+path,
		strings.NewReader(body))
	must.Do(w.t, err)
	req.Header.Set("Authorization", "Bearer "+testToken)
	req.Close = true // a refused body ends its connection, which another call must not get
	res := must.Get(http.DefaultTransport.RoundTrip(req))(w.t)
	defer res.Body.Close()
	got := must.Get(io.ReadAll(res.Body))(w.t)
	return res.StatusCode, string(got)
}

func invocation(operation, args string) string {
	return `{"connector_fqn":"github://acme/calls","tool":"calls","operation":"` + operation + `","args":` + args + `}`
}

// result is the response to a call.
type result struct {
	Status, Tool, Operation, Body string
	FQN                           string `json:"connector_fqn"`
	AuditID                       string `json:"audit_id"`
	Upstream                      int    `json:"upstream_status"`
	ContentType                   string `json:"content_type"`
	Base64                        []byte `json:"body_base64"`
}

func (w *world) result(body string) result {
	w.t.Helper()
	status, text := w.call(body)
	var r result
	if err := json.Unmarshal([]byte(text), &r); status != 200 || err != nil || r.Status != "proxied" {
		w.t.Fatalf("%s: %d %s, %v", body, status, text, err)
	}
	return r
}

func TestAnOperationIsRunByName(t *testing.T) {
	w := newCalls(t, func(*Config) {}, func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "application/json; charset=utf-8")
		if r.Method == http.MethodPost {
			rw.WriteHeader(http.StatusUnprocessableEntity)
		}
		_, _ = io.WriteString(rw, "{\"you sent\":\""+r.Header.Get("Authorization")+"\",\t\"ü\":\"\\u0041\"}\n\xff")
	})
	got := w.result(invocation("get", `{"id":"a b","q":"x&y"}`))
	mask := strings.Repeat("*", len(testSecret))
	want := result{Status: "proxied", FQN: "github://acme/calls", Tool: "calls", Operation: "get", Upstream: 200,
		ContentType: "application/json; charset=utf-8", AuditID: w.last().ID,
		Body: "{\"you sent\":\"Bearer " + mask + "\",\t\"ü\":\"\\u0041\"}\n\ufffd"}
	if got.Body = strings.ReplaceAll(got.Body, strings.Repeat("x", len(testSecret)), mask); got.AuditID == "" ||
		strings.Contains(got.Body, testSecret) || got.Upstream != want.Upstream || got.AuditID != want.AuditID ||
		got.Body != want.Body || got.ContentType != want.ContentType || got.FQN != want.FQN || got.Operation != "get" {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	r := w.requests()[0]
	if r.RequestURI != "/v1/things/a%20b?q=x%26y" || r.Header.Get("Authorization") != "Bearer "+testSecret ||
		r.Header.Get("Accept-Encoding") != "identity" || r.Host != "api.good.example" || r.Method != http.MethodGet {
		t.Errorf("the upstream got %s %s %v", r.Method, r.RequestURI, r.Header)
	}
	row := w.last()
	if row.Event != audit.EventProxyProxied || row.Source != audit.SourceConnectorShim || row.Operation != "get" ||
		row.Binding == "" || row.Redactions != 1 || row.Path != "/v1/things/a%20b" || row.Status != 200 {
		t.Errorf("the row is %+v", row)
	}
	events := w.rows()
	if at := len(events) - 2; events[at].Event != audit.EventProxyStarted || events[at].RequestID != row.RequestID {
		t.Errorf("the row before is %+v, want the intent", events[at])
	}

	// A status of the upstream is no failure of the call.
	if got := w.result(invocation("make", `{"n":7,"title":"<t> ü"}`)); got.Upstream != 422 || w.last().Status != 422 {
		t.Errorf("got %+v", got)
	}
	if body := w.bodies[1]; body != `{"n":7,"title":"<t> ü"}` ||
		w.requests()[1].Header.Get("Content-Type") != "application/json" {
		t.Errorf("the upstream got %s as %v", body, w.requests()[1].Header)
	}
}

func TestACallHasTheBodyOfItsOperation(t *testing.T) {
	w := newCalls(t, func(*Config) {}, func(http.ResponseWriter, *http.Request) {})
	w.result(invocation("order", `{"email":"a@b.example","metadata":{"a":"b&c=d"}}`))
	if got, kind := w.bodies[0], w.requests()[0].Header.Get("Content-Type"); kind != "application/x-www-form-urlencoded" ||
		got != "email=a%40b.example&metadata%5Ba%5D=b%26c%3Dd" {
		t.Errorf("the upstream got %s as %s", got, kind)
	}
	status, text := w.call(invocation("order", `{"metadata":{"a]=1&b[":"c"}}`))
	if status != 400 || !strings.Contains(text, "arguments_invalid") || !strings.Contains(text, "the key has a bracket") ||
		len(w.bodies) != 1 {
		t.Errorf("a key with a bracket: %d %s, and %d requests", status, text, len(w.bodies))
	}
}

func TestAResponseThatIsNoTextIsBase64(t *testing.T) {
	for size := range []int{0, 1, 2, 3, 3072 - 1, 3072, 3072 + 1, 3 * 3072} {
		data := bytes.Repeat([]byte{0xff, 'a', 0}, size)
		w := newCalls(t, func(*Config) {}, func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Type", "application/octet-stream")
			for _, b := range data {
				_, _ = rw.Write([]byte{b})
			}
		})
		if got := w.result(invocation("open", `{}`)); !bytes.Equal(got.Base64, data) || got.AuditID != w.last().ID {
			t.Errorf("%d bytes: got %d bytes, %q of %q", len(data), len(got.Base64), got.AuditID, w.last().ID)
		}
	}
}

// What the proxy denies on the wire is denied here for the same reason, and what is no call of the operation leaves
// nothing behind but its row.
func TestACallThatIsDeniedSendsNothing(t *testing.T) {
	w := newCalls(t, func(*Config) {}, hello)
	named := strings.Replace(invocation("get", `{"id":"7"}`), "github://acme/calls", "github://acme/other", 1)
	for _, c := range []struct {
		call   string
		status int
		class  string
		reason Reason
		event  audit.Event
	}{
		{invocation("get", `{"id":"mine"}`), 403, "capability_denied", ReasonNotMatched, audit.EventProxyRejected},
		{invocation("get", `{"id":"7","state":"closed"}`), 403, "capability_denied", ReasonQuery,
			audit.EventProxyRejected},
		{invocation("drop", `{"id":"7"}`), 403, "approval_required", ReasonApproval, audit.EventProxyRejected},
		{invocation("get", `{"id":"`+strings.Repeat("x", maxPath)+`"}`), 400, "invalid_request", ReasonMalformed,
			audit.EventProxyRejected},
		{invocation("none", `{}`), 403, "capability_denied", ReasonNotMatched, audit.EventOperationRejected},
		{named, 403, "capability_denied", ReasonNotMatched, audit.EventOperationRejected},
		{invocation("get", `[7]`), 400, "invalid_request", ReasonArguments, audit.EventOperationRejected},
		{invocation("get", `{"id":"7","id":"8"}`), 400, "invalid_request", ReasonArguments, audit.EventOperationRejected},
		{invocation("get", `{"id":NaN}`), 400, "invalid_request", ReasonArguments, audit.EventOperationRejected},
		{invocation("get", `{"id":"a/b"}`), 400, "invalid_request", ReasonArguments, audit.EventOperationRejected},
		{invocation("get", `{"id":".."}`), 400, "invalid_request", ReasonArguments, audit.EventOperationRejected},
		{invocation("get", `{"id":"7","other":"x"}`), 400, "invalid_request", ReasonArguments, audit.EventOperationRejected},
		{invocation("make", `{"title":"t","n":"7"}`), 400, "invalid_request", ReasonArguments, audit.EventOperationRejected},
		{"", 400, "invalid_request", ReasonArguments, audit.EventOperationRejected},
		{invocation("get", `{"id":"`+strings.Repeat("x", 10<<20)+`"}`), 413, "resource_limit_exceeded", ReasonTooLarge,
			audit.EventOperationRejected},
	} {
		status, body := w.call(c.call)
		class, why := reason(t, body)
		row := w.last()
		if status != c.status || class != c.class || why != c.reason {
			t.Errorf("%.120s: %d %s", c.call, status, body)
		}
		if row.Event != c.event || row.Reason != string(c.reason) || row.Source != audit.SourceConnectorShim ||
			row.Decision != audit.DecisionRejected || !strings.Contains(body, row.ID) || row.Binding != "" {
			t.Errorf("%.120s: the row is %+v", c.call, row)
		}
	}
	if n := len(w.requests()); n != 0 {
		t.Errorf("the upstream got %d requests", n)
	}
	_, body := w.call(invocation("none", `{}`))
	if !strings.Contains(body, `"operation:github://acme/calls calls get"`) {
		t.Errorf("granted does not list the tool's operations: %s", body)
	}
	_, body = w.call(named)
	if !strings.Contains(body, `"granted":["tool:github://acme/calls calls"]`) {
		t.Errorf("granted does not list the tools where the connector has none: %s", body)
	}
}

// What a session cannot do on the wire, it cannot do here.
func TestACallDependsOnWhatARequestDoes(t *testing.T) {
	get := invocation("get", `{"id":"7"}`)
	denied := func(w *world, want Reason) {
		t.Helper()
		_, body := w.call(get)
		if _, why := reason(t, body); why != want || len(w.requests()) != 0 {
			t.Errorf("it is denied for %s, want %s", why, want)
		}
	}
	w := newCalls(t, func(*Config) {}, hello)
	granted := func(change func(*Grants)) {
		old := w.plane.grants.Load()
		g := &Grants{Index: old.Index, Scrub: old.Scrub}
		change(g)
		w.plane.SetGrants(g)
	}
	granted(func(*Grants) {})
	denied(w, ReasonUnbound)
	granted(func(g *Grants) { g.Locked = true })
	denied(w, ReasonVaultLocked)
	granted(func(g *Grants) { g.Unreadable = map[spec.FQN]Reason{"github://acme/calls": ReasonStoreUnreadable} })
	denied(w, ReasonStoreUnreadable)

	w = newCalls(t, func(c *Config) { c.Limits.Rate = 1 }, hello)
	body := ""
	for range 3 {
		_, body = w.call(invocation("get", `{}`))
	}
	if _, why := reason(t, body); why != ReasonRate {
		t.Errorf("over the rate it is denied for %s", why)
	}
	w = newCalls(t, func(*Config) {}, hello)
	w.plane.stopDrain()
	<-w.plane.inflight.close()
	denied(w, ReasonDraining)
}

// The checks of a response are those of one on the wire; one that breaks off breaks the object off.
func TestTheResponseOfACallIsCheckedAsAnyOther(t *testing.T) {
	w := newCalls(t, func(*Config) {}, func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(rw)
		_, _ = io.WriteString(z, testSecret)
		_ = z.Close()
	})
	status, body := w.call(invocation("get", `{"id":"7"}`))
	if _, why := reason(t, body); status != 406 || why != ReasonEncoding {
		t.Errorf("%d %s", status, body)
	}
	w = newCalls(t, func(*Config) {}, func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "text/plain")
		rw.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(rw, "half")
	})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+w.addr+operationsPath,
		strings.NewReader(invocation("get", `{"id":"7"}`)))
	must.Do(t, err)
	req.Header.Set("Authorization", "Bearer "+testToken)
	res, err := http.DefaultTransport.RoundTrip(req)
	must.Do(t, err)
	defer res.Body.Close()
	if got, err := io.ReadAll(res.Body); err == nil || json.Valid(got) {
		t.Errorf("a response that broke off ends as %q, %v", got, err)
	}
	w.untilRows(func(r []audit.Row) bool { return r[len(r)-1].Event == audit.EventProxyProxied })
	if row := w.last(); row.Reason != string(ReasonTruncated) {
		t.Errorf("the row is %+v", row)
	}
}

// Calls hold memory of the session's budget, and release it.
func TestCallsAreWithinTheMemoryOfTheSession(t *testing.T) {
	w := newCalls(t, func(c *Config) { c.Limits.Memory = 64 << 20; c.Limits.Wire = wire.Limits{} }, hello)
	large := invocation("get", `{"id":"7","q":"`+strings.Repeat("x", 900<<10)+`"}`)
	for range 20 {
		if status, _ := w.call(large); status != 400 {
			t.Errorf("it is answered with %d", status)
		}
		_ = w.result(invocation("open", `{}`))
	}
	w.eventually(func() bool { return w.plane.budget.Used() < 1<<20 })
}

// A credential of another kind than the operation declares is none for it.
func TestACredentialIsOfTheKindThatIsDeclared(t *testing.T) {
	w := newCalls(t, func(*Config) {}, hello)
	g := w.plane.grants.Load()
	bound := g.Bound["github://acme/calls"]
	bound.Credential.Kind = "api_key"
	w.plane.SetGrants(&Grants{Index: g.Index, Scrub: g.Scrub, Bound: map[spec.FQN]Bound{"github://acme/calls": bound}})
	_, body := w.call(invocation("get", `{"id":"7"}`))
	if _, why := reason(t, body); why != ReasonUnbound || len(w.requests()) != 0 {
		t.Errorf("it is denied for %q: %s", why, body)
	}
}
