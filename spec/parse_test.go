package spec

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// specWith is a good spec in which the operation's fields (and, where given,
// the top's) are extended.
func specWith(fields string) string {
	return fmt.Sprintf(`{"schema_version": "aileron.connector.v1",
 "connector": {"fqn": "github://acme/tracker", "version": "1.2.0"},
 "tools": [{"name": "tracker", "operations": [{"name": "issues.get", %s}]}]}`, fields)
}

const goodFields = `"method": "GET", "path": "/v1/projects/{project}/issues/{id}", "hosts": ["api.tracker.example"],
 "credential": {"kind": "api_key", "inject": {"in": "header", "name": "X-Api-Key", "format": "{secret}"}}`

func TestInjectionDefaults(t *testing.T) {
	for credential, want := range map[string]string{
		`"bearer"`:  "header Authorization Bearer {secret}",
		`"oauth2"`:  "header Authorization Bearer {secret}",
		`"basic"`:   "header Authorization Basic {secret}",
		`"api_key"`: "header Authorization Bearer {secret}",
		`{"kind": "api_key", "inject": {"name": "X-Key"}}`:                       "header X-Key {secret}",
		`{"kind": "api_key", "inject": {"in": "query", "name": "key"}}`:          "query key {secret}",
		`{"kind": "api_key", "inject": {"in": "path", "name": "id"}}`:            "path id {secret}",
		`{"kind": "bearer", "inject": {"in": "header", "format": "t {secret}"}}`: "header Authorization t {secret}",
	} {
		c, err := Parse([]byte(specWith(pathAndHost + `"credential": ` + credential)))
		if err != nil {
			t.Errorf("%s: %v", credential, err)
			continue
		}
		in := c.Tools[0].Operations[0].Injection
		if got := in.In + " " + in.Name + " " + in.Format; got != want {
			t.Errorf("%s is injected as %q, want %q", credential, got, want)
		}
	}
}

// wantDiagnostic checks that reading spec returns, among others, the diagnostic
// that begins with want, or one without a path that contains it.
func wantDiagnostic(t *testing.T, spec, want string) {
	t.Helper()
	_, err := Parse([]byte(spec))
	if !slices.ContainsFunc(Diagnostics(err), func(d *Diagnostic) bool {
		return strings.HasPrefix(d.Error(), want) || d.Path == "" && strings.Contains(d.Message, want)
	}) {
		t.Errorf("the diagnostics are %q, want one that begins with %q", fmt.Sprint(err), want)
	}
}

// wantOperationDiagnostics checks each diagnostic of an operation with the given
// fields; want is what follows the path of the operation.
func wantOperationDiagnostics(t *testing.T, cases []operationCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { wantDiagnostic(t, specWith(c.fields), "tools[0].operations[0]"+c.want) })
	}
}

type operationCase struct{ name, fields, want string }

// pathAndHost are the beginning of an operation's fields.
const pathAndHost = `"method": "GET", "path": "/{id}", "hosts": ["a.example"], `

// edited returns a good spec in which the first of two texts is the second.
func edited(was, is string) string { return strings.Replace(specWith(goodFields), was, is, 1) }

func TestDiagnosticsOfAFile(t *testing.T) {
	for _, c := range []struct{ name, spec, want string }{
		{"empty", ``, "the JSON ends too early"},
		{"cut", `{"tools": [`, "tools[0]: the JSON ends too early"},
		{"trailing data", specWith(goodFields) + "{}", "after the end"},
		{"two values", specWith(goodFields) + " null", "after the end"},
		{"not an object", `[]`, "it is not an object"},
		{"not UTF-8", "{\"tools\xff\": 1}", "it is not UTF-8"},
		{"byte order mark", "\ufeff" + specWith(goodFields), "it is not JSON"},
		{"too large", specWith(goodFields) + strings.Repeat(" ", MaxSize), "larger than 1048576 bytes"},
		{"too deep", strings.Repeat("[", 100000), strings.Repeat("[0]", 17) + ": it is nested more than 16 deep"},
		{"schema v2", edited("connector.v1", "connector.v2"), `schema_version: it is "aileron.connector.v2"`},
		{"schema space", edited("aileron.connector.v1", " aileron.connector.v1"), "schema_version: it is"},
		{"schema missing", `{"connector": {"fqn": "hub://a/b", "version": "1.0.0"}, "tools": []}`,
			"schema_version: it is missing"},
		{"no connector", `{"schema_version": "aileron.connector.v1"}`, "connector: it is missing"},
		{"no tools", `{"schema_version": "aileron.connector.v1"}`, "tools: it has no entry"},
		{"fqn", edited("github://", "https://"), "connector.fqn: read the connector name"},
		{"fqn of one part", edited("acme/tracker", "acme"), "connector.fqn: read the connector name"},
		{"fqn with dots", edited("acme/tracker", "acme/.."), "connector.fqn: read the connector name"},
		{"version v", edited("1.2.0", "v1.2.0"), `connector.version: "v1.2.0" is not`},
		{"version range", edited("1.2.0", "^1.2.0"), "connector.version:"},
		{"version short", edited("1.2.0", "1.2"), "connector.version:"},
		{"version zeros", edited("1.2.0", "1.02.0"), "connector.version:"},
		{"operation is a text", `{"tools": [{"name": "t", "operations": ["x"]}]}`,
			"tools[0].operations[0]: it is not an object"},
		{"two kinds", `{"schema_version": "aileron.connector.v1", "connector": {"fqn": "hub://a/b", "version": "1.0.0"},
			"tools": [{"name": "t", "operations": [
			{"name": "a", "method": "GET", "path": "/a", "hosts": ["a.example"], "credential": "bearer"},
			{"name": "b", "method": "GET", "path": "/b", "hosts": ["a.example"], "credential": "basic"}]}]}`,
			"tools[0].operations[1].credential: it is the second kind"},
		{"operation twice", `{"tools": [{"name": "t", "operations": [
			{"name": "Get", "hosts": ["a.example"]}, {"name": "get", "hosts": ["a.example"]}]}]}`,
			`tools[0].operations[1].name: "get" appears twice`},
		{"tool twice", `{"tools": [{"name": "T", "operations": []}, {"name": "t", "operations": []}]}`,
			`tools[1].name: "t" appears twice`},
		{"empty tool", `{"tools": [{"name": "t", "operations": []}]}`, "tools[0].operations: it has no entry"},
	} {
		t.Run(c.name, func(t *testing.T) { wantDiagnostic(t, c.spec, c.want) })
	}
}

func TestDiagnosticsOfAnOperation(t *testing.T) {
	wantOperationDiagnostics(t, []operationCase{
		{"unknown key", goodFields + `, "timeout": 1`, ".timeout: unknown key"},
		{"folded key", goodFields + `, "HOSTS": ["evil.example"]`, `.HOSTS: unknown key; use "hosts"`},
		{"long s", goodFields + `, "hoſts": ["evil.example"]`, `."ho\u017fts": unknown key; use "hosts"`},
		{"repeated key", goodFields + `, "hosts": ["evil.example"]`, ".hosts: duplicate key"},
		{"repeated escaped key", goodFields + `, "\u0068osts": ["evil.example"]`, ".hosts: duplicate key"},
		{"null", goodFields + `, "summary": null`, ".summary: it is not a string"},
		{"number for text", `"method": 1, "path": "/", "hosts": ["a.example"]`, ".method: it is not a string"},
		{"text for list", `"hosts": "a.example"`, ".hosts: it is not a list"},
		{"number for host", `"hosts": [1]`, ".hosts[0]: it is not a string"},
		{"text for flag", pathAndHost + `"ranges": "true"`, ".ranges: it is not true or false"},
		{"text for packed", pathAndHost + `"packed": "yes"`, ".packed: it is not true or false"},
		{"no hosts", `"method": "GET"`, ".hosts: it has no entry"},
		{"too many hosts", `"hosts": [` + strings.Repeat(`"a.example", `, 300) + `"b.example"]`,
			".hosts: it has more than 256 entries"},
		{"same host twice", `"hosts": ["a.example", "A.example:443"]`, ".hosts[1]: \"A.example:443\" appears twice"},
		{"newline in summary", pathAndHost + `"summary": "a\nb"`, ".summary: it has a line break"},
		{"escape code in description", pathAndHost + `"description": "\u001b[2J"`, ".description: it has a line break"},
		{"hidden text", pathAndHost + `"description": "ok\udb40\udc41"`, ".description: it has a line break"},
		{"right to left", pathAndHost + `"description": "\u202egpj"`, ".description: it has a line break"},
		{"half a surrogate", pathAndHost + `"summary": "\ud800"`,
			".summary: it has a line break, a control character or a broken escape"},
		{"lower-case method", `"method": "get", "hosts": ["a.example"]`, `.method: "get" is not a method`},
		{"CONNECT", `"method": "CONNECT", "hosts": ["a.example"]`, `.method: "CONNECT"`},
		{"empty method", `"method": "", "hosts": ["a.example"]`, `.method: it is empty`},
		{"relative path", `"method": "GET", "path": "v1", "hosts": ["a.example"]`,
			".path: it does not begin with a slash"},
		{"approval", pathAndHost + `"approval": "always"`, `.approval: "always" is not "none" or "required"`},
		{"idempotency", pathAndHost + `"idempotency": true`, ".idempotency: it is not a string"},
		{"upgrade", pathAndHost + `"upgrade": "h2c"`, `.upgrade: "h2c" is not "websocket"`},
		{"query", pathAndHost + `"query": "some"`, `.query: "some" is not`},
		{"input twice", pathAndHost + `"inputs": [{"name": "q"}, {"name": "q"}]`, `.inputs[1].name: "q" appears twice`},
		{"input name", pathAndHost + `"inputs": [{"name": "$(id)"}]`, ".inputs[0].name:"},
		{"input type", pathAndHost + `"inputs": [{"name": "q", "type": "text"}]`, `.inputs[0].type: "text" is not`},
	})
}

func TestDiagnosticsOfAuditFields(t *testing.T) {
	wantOperationDiagnostics(t, []operationCase{
		{"audit path variable", pathAndHost + `"audit": [{"name": "x", "source": "path.nope"}]`, ".audit[0].source:"},
		{"audit request body", pathAndHost + `"audit": [{"name": "x", "source": "request.body.x"}]`, ".audit[0].source:"},
		{"audit modifier", pathAndHost + `"audit": [{"name": "x", "source": "response.body.a|@this"}]`,
			".audit[0].source:"},
		{"audit query", pathAndHost + `"audit": [{"name": "x", "source": "response.body.a.#(b==1)"}]`,
			".audit[0].source:"},
		{"audit multipath", pathAndHost + `"audit": [{"name": "x", "source": "response.body.{a,b}"}]`,
			".audit[0].source:"},
		{"audit lines", pathAndHost + `"audit": [{"name": "x", "source": "response.body...0"}]`, ".audit[0].source:"},
		{"audit of aileron's own", pathAndHost + `"audit": [{"name": "redirected", "source": "path.id"}]`,
			".audit[0].name: \"redirected\" is a field of aileron's own"},
		{"audit twice", pathAndHost + `"audit": [{"name": "x", "source": "path.id"}, {"name": "x", "source": "path.id"}]`,
			`.audit[1].name: "x" appears twice`},
	})
}

func TestDiagnosticsOfACredential(t *testing.T) {
	wantOperationDiagnostics(t, []operationCase{
		{"credential kind", pathAndHost + `"credential": "password"`, `.credential: the kind "password"`},
		{"credential null", pathAndHost + `"credential": null`, ".credential: it is neither"},
		{"credential key", pathAndHost + `"credential": {"kind": "bearer", "Inject": {}}`,
			".credential.Inject: unknown key"},
		{"credential without path", `"method": "GET", "hosts": ["a.example"], "credential": "bearer"`,
			".credential: an operation with a credential must declare"},
		{"credential without method", `"path": "/", "hosts": ["a.example"], "credential": "bearer"`,
			".credential: an operation with a credential must declare"},
		{"credential in clear", `"method": "GET", "path": "/", "hosts": ["a.example:80"], "credential": "bearer"`,
			".hosts[0]: port 80 is in clear"},
		{"credential for a wildcard", `"method": "GET", "path": "/", "hosts": ["*.a.example"], "credential": "bearer"`,
			".hosts[0]: a wildcard host"},
		{"inject Host", pathAndHost + `"credential": {"kind": "bearer", "inject": {"name": "Host"}}`,
			`.credential.inject: "Host" is not`},
		{"inject Content-Length", pathAndHost + `"credential": {"kind": "bearer", "inject": {"name": "content-length"}}`,
			".credential.inject:"},
		{"inject Proxy-Authorization",
			pathAndHost + `"credential": {"kind": "bearer", "inject": {"name": "Proxy-Authorization"}}`,
			".credential.inject:"},
		{"inject no token", pathAndHost + `"credential": {"kind": "bearer", "inject": {"name": "X Key"}}`,
			".credential.inject:"},
		{"inject cookie line", pathAndHost + `"credential": {"kind": "bearer", "inject": {"name": "X:"}}`,
			".credential.inject:"},
		{"inject nowhere", pathAndHost + `"credential": {"kind": "bearer", "inject": {"in": "body"}}`,
			`.credential.inject.in: "body" is not`},
		{"inject path", pathAndHost + `"credential": {"kind": "bearer", "inject": {"in": "path", "name": "nope"}}`,
			".credential.inject: the path has no variable"},
		{"inject query name", pathAndHost + `"credential": {"kind": "bearer", "inject": {"in": "query"}}`,
			".credential.inject:"},
		{"basic in the query", pathAndHost + `"credential": {"kind": "basic", "inject": {"in": "query", "name": "k"}}`,
			".credential.inject:"},
		{"format without secret", pathAndHost + `"credential": {"kind": "bearer", "inject": {"format": "Bearer x"}}`,
			".credential.inject: the format"},
		{"format with two", pathAndHost + `"credential": {"kind": "bearer", "inject": {"format": "{secret}{secret}"}}`,
			".credential.inject: the format"},
	})
}

func TestDiagnosticsAreBounded(t *testing.T) {
	_, err := Parse([]byte(`{` + strings.Repeat(`"tools": 1, `, 80000) + `"x": 1}`))
	list := Diagnostics(err)
	if len(list) != maxDiagnostics+1 || !strings.HasPrefix(list[maxDiagnostics].Message, "and ") {
		t.Errorf("there are %d diagnostics, the last %v", len(list), list[len(list)-1])
	}
}
