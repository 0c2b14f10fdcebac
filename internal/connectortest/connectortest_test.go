package connectortest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/catalog"
)

// connector returns a connector with these operations, and a credential of the kind.
func connector(t *testing.T, kind, operations string) *spec.Connector {
	t.Helper()
	manifest := "[connector]\nname = \"github://acme/tracker\"\nversion = \"1.0.0\"\n[capabilities.network]\n" +
		"hosts = [\"api.t.example:443\", \"*.t.example:8443\", \"plain.t.example:80\"]\n"
	if kind != "" {
		manifest += fmt.Sprintf("[capabilities.credential]\nkind = %q\n", kind)
	}
	c, err := spec.Load([]byte(manifest), []byte(`{"schema_version": "aileron.connector.v1", "connector":
		{"fqn": "github://acme/tracker", "version": "1.0.0"}, "tools": [{"name": "t", "operations": [`+operations+`]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func run(t *testing.T, c *spec.Connector, opts Options) []Result {
	t.Helper()
	return must.Get(Run(t.Context(), c, opts))(t)
}

// Every place of a credential, every type of input and every kind of host arrives as declared.
func TestWhatIsDeclaredArrives(t *testing.T) {
	for _, w := range []struct{ kind, op, want string }{
		{"bearer", `{"name": "a", "method": "POST", "path": "/a/{x}/{rest...}", "hosts": ["api.t.example"],
			"credential": "bearer", "inputs": [{"name": "x", "type": "integer"}, {"name": "q", "in": "query", "type": "array"},
				{"name": "o", "type": "object"}, 
				{"name": "n", "type": "number"}, {"name": "b", "type": "boolean"}, {"name": "s", "in": "query", "values": ["v"]}]}`,
			"POST https://api.t.example/a/1/sample-rest?q=sample&s=v header Authorization: Bearer {secret}"},
		{"basic", `{"name": "a", "method": "GET", "path": "/", "hosts": ["api.t.example"], "credential": "basic"}`,
			"GET https://api.t.example/ header Authorization: Basic {secret}"},
		{"api_key", `{"name": "a", "method": "GET", "path": "/", "hosts": ["api.t.example"], "credential": {"kind": "api_key",
			"inject": {"in": "query", "name": "key"}}}`, "GET https://api.t.example/ query key: {secret}"},
		{"api_key", `{"name": "a", "method": "GET", "path": "/bot/{token}/x", "hosts": ["api.t.example"],
			"credential": {"kind": "api_key", "inject": {"in": "path", "name": "token"}}}`,
			"GET https://api.t.example/bot/credential/x path token: {secret}"},
		{"api_key", `{"name": "a", "method": "GET", "path": "/", "hosts": ["api.t.example"], "credential": {"kind": "api_key",
			"inject": {"name": "X-Key", "format": "Key {secret}"}}}`, "GET https://api.t.example/ header X-Key: Key {secret}"},
		{"bearer", `{"name": "a", "method": "GET", "path": "/", "hosts": ["api.t.example"], "credential": {"kind": "bearer",
			"inject": {"username": "x-token"}}}`, "GET https://api.t.example/ header Authorization: Basic {secret}"},
		{"", `{"name": "a", "method": "*", "path": "/{r}/x", "hosts": ["*.t.example:8443"],
			"inputs": [{"name": "r", "values": ["*.git"]}]}`, "GET https://sample.t.example:8443/sample.git/x "},
		{"", `{"name": "a", "hosts": ["plain.t.example:80"]}`, "GET http://plain.t.example/ "},
		{"", `{"name": "a", "method": "DELETE", "path": "/x/{$}", "hosts": ["api.t.example"]}`,
			"DELETE https://api.t.example/x/ "},
	} {
		r := run(t, connector(t, w.kind, w.op), Options{})[0]
		if got := r.Method + " " + r.URL + " " + r.Credential; !r.OK || got != w.want {
			t.Errorf("%s:\n%s, want %s; problems %q", w.op, got, w.want, r.Problems)
		}
		if (r.Redactions > 0) != (w.kind != "") {
			t.Errorf("%s: %d redactions", w.op, r.Redactions)
		}
	}
}

// What is wrong with a connector has a problem that names it.
func TestFaultsOfAConnector(t *testing.T) {
	const rest = `"hosts": ["api.t.example"]`
	for _, w := range []struct{ ops, args, want string }{
		{`{"name": "a", "method": "GET", "path": "/x/{id}", ` + rest +
			`}, {"name": "b", "method": "GET", "path": "/x/{key}", ` + rest + `}`, "",
			"b: it is never reached with these values: GET /x/sample-key is the operation t a, which takes"},
		{`{"name": "a", "method": "GET", "path": "/x/me", ` + rest + `}, {"name": "b", "method": "GET", "path": "/x/{id}", ` +
			rest + `, "inputs": [{"name": "id", "values": ["me"]}]}`, "", "b: it is never reached with these values"},
		{`{"name": "b", "method": "HEAD", "path": "/", ` + rest + `, "audit": [{"name": "n", "source": "response.body.n"}]}`,
			"", `b: the audit field "n" is in no row: response.body.n finds nothing`},
		{`{"name": "b", "method": "GET", "path": "/", ` + rest + `, "audit": [{"name": "n", "source": "response.body.n"},
			{"name": "m", "source": "response.body.n.m"}]}`, "", `b: the audit field "m" is in no row`},
		{`{"name": "b", "method": "GET", "path": "/{id}", ` + rest + `}`, `{"id": "a/b"}`,
			"b: no request can be made of its"},
		{`{"name": "b", "method": "GET", "path": "/{id}", ` + rest + `}`, `[]`, "the arguments are not a JSON object"},
		{`{"name": "b", "method": "GET", "path": "/{id}", ` + rest + `}`, `{"id": "a", "id": "b"}`, "duplicate key"},
		{`{"name": "b", "method": "GET", "path": "/{id}", ` + rest + `, "inputs": [{"name": "id", "values": ["x"]}]}`,
			`{"id": "y"}`, "b: its own request is denied: "},
		{`{"name": "b", "hosts": ["api.t.example"]}`, `{}`, "it is for HTTP clients alone"},
	} {
		opts := Options{}
		if w.args != "" {
			opts = Options{Operation: "b", Args: json.RawMessage(w.args)}
		}
		var got []string
		for _, r := range run(t, connector(t, "", w.ops), opts) {
			for _, p := range r.Problems {
				got = append(got, r.Operation+": "+p)
			}
			if r.OK != (len(r.Problems) == 0) {
				t.Errorf("%s: ok is %v with %q", r.Operation, r.OK, r.Problems)
			}
		}
		if len(got) != 1 || !strings.Contains(got[0], w.want) {
			t.Errorf("%s with %s: %q, want %q", w.ops, w.args, got, w.want)
		}
	}
}

// A response of the service shows whether the audit fields find something in it.
func TestAResponseOfTheService(t *testing.T) {
	c := connector(t, "", `{"name": "a", "method": "GET", "path": "/", "hosts": ["api.t.example"],
		"audit": [{"name": "n", "source": "response.body.items.0.id"}]}`)
	r := run(t, c, Options{Operation: "t a", Response: []byte(`{"items": [{"id": 7}]}`)})[0]
	if !r.OK || r.Audit["n"] != "7" {
		t.Errorf("%+v", r)
	}
	if r := run(t, c, Options{Operation: "a", Response: []byte(`{"items": []}`)})[0]; r.OK {
		t.Errorf("%+v", r)
	}
	if r := run(t, c, Options{})[0]; !r.OK || r.Audit["n"] != "sample-n" {
		t.Errorf("%+v", r)
	}
	_, err := Run(t.Context(), c, Options{Operation: "z"})
	if err == nil || !strings.Contains(err.Error(), `no operation "z"`) {
		t.Errorf("an operation that there is none of: %v", err)
	}
}

// A place in which a credential is logged, and what was not tried, are named.
func TestNotes(t *testing.T) {
	c := connector(t, "api_key", `{"name": "q", "method": "GET", "path": "/", "hosts": ["api.t.example"],
		"approval": "required", "upgrade": "websocket",
		"credential": {"kind": "api_key", "inject": {"in": "query", "name": "key"}}},
		{"name": "p", "method": "GET", "path": "/{t}", "hosts": ["api.t.example"],
		"credential": {"kind": "api_key", "inject": {"in": "path", "name": "t"}}},
		{"name": "any", "hosts": ["*.t.example:8443"]},
		{"name": "w", "method": "PUT", "path": "/w/{branch}", "hosts": ["api.t.example"], "credential": {"kind": "api_key",
		"inject": {"in": "header", "name": "X-Key"}}, "approval": {"when": {"path.branch": ["main"]}}}`)
	want := [][]string{{"the credential is in the query", "needs approval", "the WebSocket was not"},
		{"the credential is in the path"}, {"allows every request"}, {"it asks when path.branch is main; that was given"}}
	for i, r := range run(t, c, Options{}) {
		all := strings.Join(r.Notes, "\n")
		missing := func(s string) bool { return !strings.Contains(all, s) }
		if !r.OK || len(r.Notes) != len(want[i]) || slices.ContainsFunc(want[i], missing) {
			t.Errorf("%s: %q, problems %q", r.Operation, r.Notes, r.Problems)
		}
	}
}

// What the proxy must never do is a problem too. The proxy does not do it, so what it would record is made up.
func TestWhatTheProxyMustNotDo(t *testing.T) {
	c := connector(t, "bearer", `{"name": "a", "method": "POST", "path": "/a", "hosts": ["api.t.example"],
		"credential": "bearer", "inputs": [{"name": "x"}]},
		{"name": "b", "method": "GET", "path": "/b", "hosts": ["api.t.example"]}`)
	const secret = "test-SECRETSECRET"
	seen := func(method, address, authorization, body string) *seenRequest {
		u := must.Get(url.Parse(address))(t)
		r := &http.Request{Method: method, URL: u, Header: http.Header{"Authorization": {authorization}}}
		return &seenRequest{r, body, address + authorization + body}
	}
	good := response{Status: 200, body: "{}", row: audit.Row{}}
	for _, w := range []struct {
		op   int
		got  response
		seen *seenRequest
		want string
	}{
		{0, good, seen("POST", "/a", "Bearer "+secret, `{"x":1}`), ""},
		{0, good, seen("POST", "/a", "", `{"x":1}`),
			"the credential did not arrive in the header Authorization as Bearer {secret}"},
		{0, good, seen("GET", "/a", "Bearer "+secret, `{"x":1}`), "the method POST arrived as GET"},
		{0, good, seen("POST", "/b", "Bearer "+secret, `{"x":1}`), "the path /a arrived as /b"},
		{0, good, seen("POST", "/a?y=1", "Bearer "+secret, `{"x":1}`), `the query "" arrived as "y=1"`},
		{0, good, seen("POST", "/a", "Bearer "+secret, `{}`), "the body"},
		{0, response{Status: 200, body: secret}, seen("POST", "/a", "Bearer "+secret, `{"x":1}`),
			"the secret is in the response"},
		{0, response{Status: 502, body: `{"error":{"class":"c","message":"m"}}`},
			seen("POST", "/a", "Bearer "+secret, `{"x":1}`), "the response of the service, 200, became c, m"},
		{0, response{Status: 403}, nil, "nothing arrived at the service: the status 403"},
		{1, good, seen("GET", "/b", "Bearer "+secret, ""), "a credential arrived, and the operation declares none"},
	} {
		op := c.Tools[0].Operations[w.op]
		tr := &trial{bench: &bench{secret: secret}, op: op, result: Result{Audit: map[string]string{}}}
		tr.call = spec.Call{Target: spec.Target{Method: op.Method, Path: op.Path.String()}}
		if w.op == 0 {
			tr.call.Body = []byte(`{"x":1}`)
		}
		w.got.seen = w.seen
		tr.check(w.got)
		if got := strings.Join(tr.result.Problems, "\n"); (w.want == "") != (got == "") || !strings.Contains(got, w.want) {
			t.Errorf("%+v: %q, want %q", w.got, got, w.want)
		}
		if strings.Contains(strings.Join(tr.result.Problems, ""), secret) {
			t.Errorf("a problem has the secret: %q", tr.result.Problems)
		}
	}
}

// The connectors of the catalogue pass.
func TestTheCatalogue(t *testing.T) {
	for _, e := range catalog.List() {
		for _, r := range run(t, e.Connector, Options{}) {
			if !r.OK {
				t.Errorf("%s: %s: %q", e.Name, r.Operation, r.Problems)
			}
		}
	}
}
