package proxy

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/spec"
)

// pinnedSpec is a version of the connector of callsSpec that no request on the wire can use.
const pinnedSpec = `{"schema_version":"aileron.connector.v1",
"connector":{"fqn":"github://acme/calls","version":"0.9.0"},
"tools":[{"name":"calls","operations":[
 {"name":"get","method":"GET","path":"/v0/things/{id}","hosts":["api.good.example"],"credential":"bearer"},
 {"name":"mine","method":"GET","path":"/v0/things/mine","hosts":["api.good.example"],"credential":"bearer"}]}]}`

// pinnedCall calls an operation of pinnedSpec, as an action does that pins it.
func pinnedCall(w *world, change func(*operationCall), operation string, args map[string]any) (string, *Denial) {
	w.t.Helper()
	c, err := spec.Load([]byte(strings.Replace(callsManifest, "1.0.0", "0.9.0", 1)), []byte(pinnedSpec))
	must(w.t, err)
	index, err := spec.NewIndex([]*spec.Connector{c})
	must(w.t, err)
	in, err := spec.NewInvocation("github://acme/calls", "calls", operation, args)
	must(w.t, err)
	r, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, "/v1/actions/run", nil)
	must(w.t, err)
	var denied *Denial
	res := w.plane.serveCall(Listener{}, r, audit.SourceConnectorShim, func(c *callRequest) (*http.Response, *Denial) {
		call := &operationCall{callRequest: c, grants: w.plane.grants.Load(), index: index,
			fields: map[string]any{"action": "report"}}
		change(call)
		x, res, d := call.do(in)
		if denied = d; d != nil {
			return nil, d
		}
		return c.respond(x, res, "report")
	})
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	must(w.t, err)
	return string(body), denied
}

// A call may be of a connector that the wire does not use: it is decided by that one's bytes alone.
func TestACallIsDecidedByTheIndexThatItIsGiven(t *testing.T) {
	w := newCalls(t, func(*Config) {}, hello)
	unchanged := func(*operationCall) {}
	body, d := pinnedCall(w, unchanged, "get", map[string]any{"id": "7"})
	if d != nil ||
		!strings.HasPrefix(body, `{"status":"proxied","action":"report","connector_fqn":"github://acme/calls",`) {
		t.Fatalf("it is %s, %v", body, d)
	}
	if r := w.requests()[0]; r.URL.Path != "/v0/things/7" || r.Header.Get("Authorization") != "Bearer "+testSecret {
		t.Errorf("the upstream got %s %v", r.URL, r.Header)
	}
	for _, row := range w.rows()[len(w.rows())-2:] {
		if row.ConnectorVersion != "0.9.0" || row.Fields["action"] != "report" || row.Binding == "" {
			t.Errorf("the row is %+v", row)
		}
	}
	_, d = pinnedCall(w, unchanged, "get", map[string]any{"id": "mine"})
	if d == nil || d.Reason != reasonNotMatched ||
		!slices.Contains(d.Granted, "operation:github://acme/calls calls mine") {
		t.Errorf("another operation of the pinned connector: %+v", d)
	}
	_, d = pinnedCall(w, unchanged, "make", map[string]any{"title": "t"})
	if d == nil || d.Reason != reasonNotMatched || w.last().Fields["action"] != "report" {
		t.Errorf("an operation of the version on the wire: %v", d)
	}
	_, d = pinnedCall(w, func(c *operationCall) {
		c.index, _ = spec.NewIndex(nil)
	}, "get", nil)
	if d == nil || d.Reason != reasonNotMatched {
		t.Errorf("without the operation in its index: %v", d)
	}
	// On the wire the pinned operation is still none.
	if res, text := w.do("GET", "https://api.good.example/v0/things/7", ""); res.StatusCode != 403 {
		t.Errorf("on the wire: %d %s", res.StatusCode, text)
	}
	if n := len(w.requests()); n != 1 {
		t.Errorf("the upstream got %d requests", n)
	}
}

// What a further boundary denies is recorded with the operation, and nothing is sent.
func TestACallIsWithinItsFurtherBoundary(t *testing.T) {
	w := newCalls(t, func(*Config) {}, hello)
	body, d := pinnedCall(w, func(c *operationCall) {
		c.within = func(op *spec.Operation, t spec.Target) *Denial {
			d := deny(reasonNotMatched, "the action does not list %s at %s", op.Name, t.Host)
			d.Boundary = "action"
			return d
		}
	}, "get", map[string]any{"id": "7"})
	if d == nil || d.Boundary != "action" ||
		!strings.Contains(body, `"details":{"boundary":"action","reason":"operation_not_matched"}`) ||
		!strings.Contains(body, "list get at api.good.example") {
		t.Errorf("it is %s, %v", body, d)
	}
	if row := w.last(); row.Fields["boundary"] != "action" || row.Operation != "get" || row.Path != "/v0/things/7" ||
		row.Event != audit.EventProxyRejected || len(w.requests()) != 0 {
		t.Errorf("the row is %+v", row)
	}
}

// A credential of another kind than the operation declares is none for it.
func TestACredentialIsOfTheKindThatIsDeclared(t *testing.T) {
	w := newCalls(t, func(*Config) {}, hello)
	g := w.plane.grants.Load()
	bound := g.Bound["github://acme/calls"]
	bound.Credential.Kind = "api_key"
	w.plane.SetGrants(&Grants{Index: g.Index, Scrub: g.Scrub, Bound: map[spec.FQN]Bound{"github://acme/calls": bound}})
	_, body := w.call(invocation("get", `{"id":"7"}`))
	if _, why := reason(t, body); why != reasonUnbound || len(w.requests()) != 0 {
		t.Errorf("it is denied for %q: %s", why, body)
	}
}
