package spec

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
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
		{"too large", specWith(goodFields) + strings.Repeat(" ", MaxSpecSize), "larger than 2097152 bytes"},
		{"too deep", strings.Repeat("[", 100000), strings.Repeat("[0]", 33) + ": it is nested more than 32 deep"},
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
		{"response_timeout", pathAndHost + `"response_timeout": 600`, ".response_timeout: it is not a string"},
		{"no time", pathAndHost + `"response_timeout": "soon"`, `.response_timeout: "soon" is not a time from 1s to 24h`},
		{"no limit", pathAndHost + `"response_timeout": "25h"`, `.response_timeout: "25h" is not a time from 1s to 24h`},
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

// SPC-03: what no operation may declare.
func TestMethodsAndPathsThatASpecMayNotDeclare(t *testing.T) {
	for method, why := range map[string]string{
		"get": `methods are case-sensitive: use "GET"`, "Post": `use "POST"`, "CONNECT": "never forwarded",
		"TRACE": "never forwarded", "trace": "never forwarded",
		"TRACK": "never forwarded", "PRI": "never forwarded", "FOO": "is not in the IANA HTTP Method Registry",
		"PURGE": "is not in the IANA HTTP Method Registry", "GET,POST": "is not in the IANA HTTP Method Registry",
		"GET POST": "is not in the IANA HTTP Method Registry", " GET": "is not in the IANA HTTP Method Registry",
		"**": "is not in the IANA HTTP Method Registry", "G\u0415T": "is not in the IANA HTTP Method Registry",
	} {
		for _, credential := range []string{"", `, "credential": "bearer"`} {
			wantOnly(t, `"method": `+quote(method)+`, "path": "/", "hosts": ["a.example"]`+credential, op0+".method", why)
		}
	}
	wantOnly(t, `"method": "", "path": "/", "hosts": ["a.example"]`, op0+".method", "it is empty")
	for path, why := range map[string]string{
		"..": "begin with a slash", "/a/../b": "not plain", "//a": "not plain", "/a%2fb": "not plain", "/a?x=1": "not plain",
		"/a#f": "not plain", "/a b": "not plain",
		"/{a}{b}": "is not {name}", "/{..}": "is not {name}", "": "it is empty",
	} {
		wantOnly(t, `"method": "GET", "path": `+quote(path)+`, "hosts": ["a.example"]`, op0+".path", why)
	}
}

func TestEveryRegisteredMethodMayBeDeclared(t *testing.T) {
	for _, method := range append([]string{"*"}, methods...) {
		if _, err := Parse([]byte(specWith(`"method": ` + quote(method) +
			`, "path": "/", "hosts": ["a.example"], "credential": "bearer"`))); err != nil {
			t.Errorf("%s: %v", method, err)
		}
	}
}

// TRACE returns the credential in its response, and a name that is not
// registered may mean anything to the server.
func TestAnyMethodStandsForTheRegisteredOnes(t *testing.T) {
	ix := index(t, connector(t, "hub://a/one",
		"* a.example/v1/{x} bearer", // op0
		"* a.example/open/{x}",      // op1
		"- a.example/some/{x}",      // op2
		"- b.example",               // op3
		"GET b.example/x bearer",    // op4
	))
	for request, want := range map[string]string{
		"GET a.example/v1/x": "op0", "PROPFIND a.example/v1/x": "op0", "VERSION-CONTROL a.example/v1/x": "op0",
		"TRACE a.example/v1/x": "never forwarded", "TRACK a.example/v1/x": "never forwarded",
		"CONNECT a.example/v1/x": "never forwarded", "PRI a.example/v1/x": "never forwarded",
		"FOO a.example/v1/x": "is not in the IANA HTTP Method Registry", "get a.example/v1/x": `use "GET"`,
		"Get a.example/v1/x": `use "GET"`, "* a.example/v1/x": "is not in the IANA HTTP Method Registry",
		"TRACE a.example/open/x": "never forwarded", "FOO a.example/open/x": "is not in the IANA HTTP Method Registry",
		"TRACE a.example/some/x": "never forwarded", "PUT a.example/some/x": "op2",
		"FOO b.example/y": "op3", "get b.example/x": "op3", // without a credential: the host is allowed as it is
	} {
		m, no := ix.Match(target(request))
		switch {
		case no == nil && m.Operation.Name != want:
			t.Errorf("%s is %s, want %q", request, m.Operation.Name, want)
		case no != nil && (no.Reason != ReasonOperation || !strings.Contains(no.Error(), want)):
			t.Errorf("%s is refused: %s %v, want %s and %q", request, no.Reason, no, ReasonOperation, want)
		}
		if no == nil {
			continue
		}
		for _, op := range ix.Connectors()[0].Tools[0].Operations[:3] {
			if _, no := ix.MatchOperation(op, target(request)); no == nil {
				t.Errorf("%s is inside %s", request, op.Name)
			}
		}
	}
}

const op0 = "tools[0].operations[0]"

// wantOnly fails the test unless an operation with these fields has exactly one
// diagnostic, at the path, whose message contains why.
func wantOnly(t *testing.T, fields, path, why string) {
	t.Helper()
	_, err := Parse([]byte(specWith(fields)))
	list := Diagnostics(err)
	if len(list) != 1 || list[0].Path != path || !strings.Contains(list[0].Message, why) {
		t.Errorf("the diagnostics of {%s} are %v, want one at %s with %q", fields, err, path, why)
	}
}

func TestPlaceholdersAreNamesOfCredentials(t *testing.T) {
	diagnose := func(env, value string) []*Diagnostic {
		_, err := Parse([]byte(strings.Replace(specWith(goodFields), `"tools"`,
			fmt.Sprintf(`"placeholders": [{"env": %q, "value": %q}], "tools"`, env, value), 1)))
		return Diagnostics(err)
	}
	refused := func(why string, names ...string) {
		t.Helper()
		for _, env := range names {
			list := diagnose(env, "x")
			if len(list) != 1 || list[0].Path != "placeholders[0].env" || !strings.Contains(list[0].Message, why) {
				t.Errorf("the placeholder %s: %v, want %q", env, list, why)
			}
		}
	}
	refused("names that begin like this steer programs", "HTTPS_PROXY", "NO_PROXY", "HTTPS_PROXY_USER",
		"ALL_PROXY_PASSWORD", "LD_PRELOAD", "LD_AUDIT_KEY", "AILERON_TOKEN", "AILERON_SESSION_ID",
		"SSL_CERT_FILE", "SSL_KEY", "REQUESTS_CA_BUNDLE",
		"CURL_CA_BUNDLE", "GIT_SSH_COMMAND", "GIT_SSH_KEY", "GIT_TOKEN",
		"PYTHONPATH", "PYTHON_KEY", "BASH_ENV", "BASH_FUNC_ID", "PROMPT_COMMAND", "JAVA_TOOL_OPTIONS", "SSH_KEY", "SUDO_USER",
		"XDG_SESSION_ID")
	refused("must end in _TOKEN, _KEY, _SECRET, _PASSWORD, _ID, _USER, _ACCOUNT", "PATH", "HOME", "ENV", "IFS", "USER",
		"TOKEN", "KEY", "NODE_OPTIONS", "NODE_EXTRA_CA_CERTS", "RUBYOPT", "OPENAI_BASE_URL", "GH_HOST", "GH_TOKENS",
		"GH_TOKEN_FILE", "EDITOR", "PAGER", "LANG", "CI", "TMPDIR", "PGSSLMODE", "AWS_PROFILE", "AWS_CONFIG_FILE",
		"ELECTRON_RUN_AS_NODE", "CLAUDE_CODE_SHELL", "GOINSECURE", "EVIL_KEY_PATH", "X_TOKEN_")
	refused("is not a variable's name in upper case", "gh_token", "1X_TOKEN", "A-B_TOKEN", "GH.TOKEN", "GH_TOKEN=X",
		"G\u0397_TOKEN", strings.Repeat("A", 100)+"_TOKEN", "_TOKEN", "_KEY", "_TOKEN_")
	for _, env := range []string{"GH_TOKEN", "GITHUB_TOKEN", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "TRACKER_TOKEN",
		"AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID", "TWINE_PASSWORD", "JIRA_USER",
		"STRIPE_SECRET", "SNOWFLAKE_ACCOUNT", "NPM_TOKEN", "NODE_AUTH_TOKEN", "CARGO_REGISTRY_TOKEN", "DOCKER_PASSWORD"} {
		if list := diagnose(env, "x"); len(list) > 0 {
			t.Errorf("the placeholder %s is refused: %v", env, list)
		}
	}
	for _, value := range []string{"$(id)", "() { :; }", "a b", "`id`", "a\nb", "", strings.Repeat("a", 257)} {
		if list := diagnose("GH_TOKEN", value); len(list) == 0 || list[0].Path != "placeholders[0].value" {
			t.Errorf("the value %q: %v, want a diagnostic at its place", value, list)
		}
	}
}

func TestToolNamesThatWouldShadowOrLeave(t *testing.T) {
	for _, s := range []string{
		"..", ".", "-rf", ".bashrc", "a/b", "a b", "a\\b", "$(id)", "é", strings.Repeat("a", 300),
		"sh", "bash", "Bash", "wget", "curl", "env", "sudo", "git", "ls", "claude", "ld.so", "ld-linux", "CON",
		"aileron", "aileron-x", "python3.11",
	} {
		if badToolName(s) == "" {
			t.Errorf("the tool name %q is accepted", s)
		}
	}
	for _, s := range []string{"google", "a:b", "tracker-2", "my_tool", "g.mail"} {
		if why := badToolName(s); why != "" {
			t.Errorf("the tool name %q is refused: it %s", s, why)
		}
	}
}

func TestAPathCredentialTakesItsSegment(t *testing.T) {
	tmpl := must.Get(ParseTemplate("/{bot}/send/{to}"))(t)
	if got, ok := tmpl.Replace("/placeholder/send/me", "bot", "bot1%3Ax"); !ok || got != "/bot1%3Ax/send/me" {
		t.Errorf("Replace = %q, %v", got, ok)
	}
	for _, c := range [][2]string{{"/a/b/c", "bot"}, {"/a/send/b", "nope"}, {"/../send/b", "bot"}} {
		if got, ok := tmpl.Replace(c[0], c[1], "x"); ok {
			t.Errorf("Replace(%q, %q) = %q, want nothing", c[0], c[1], got)
		}
	}
}
