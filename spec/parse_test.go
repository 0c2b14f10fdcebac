package spec

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const goodManifest = `[connector]
name = "github://acme/tracker"
version = "1.2.0"

[capabilities.network]
hosts = ["api.tracker.example:443", "*.up.tracker.example", "api.tracker.example:80"]

[capabilities.credential]
kind = "api_key"
scope = "Read and create issues"

[provides]
intents = ["read_issues", "create_issue"]
`

// specWith is a good spec in which the operation's fields (and, where given,
// the top's) are extended.
func specWith(fields string) string {
	return fmt.Sprintf(`{"schema_version": "aileron.connector.v1",
 "connector": {"fqn": "github://acme/tracker", "version": "1.2.0"},
 "tools": [{"name": "tracker", "operations": [{"name": "issues.get", %s}]}]}`, fields)
}

const goodFields = `"method": "GET", "path": "/v1/projects/{project}/issues/{id}", "hosts": ["api.tracker.example"],
 "credential": {"kind": "api_key", "inject": {"in": "header", "name": "X-Api-Key", "format": "{secret}"}}`

func TestExampleOfTheContractLoads(t *testing.T) {
	c, err := Load([]byte(goodManifest), []byte(specWith(goodFields+`, "idempotency": "idempotent",
	 "inputs": [{"name": "project", "type": "string", "required": true}, {"name": "fields"}],
	 "audit": [{"name": "project", "source": "path.project"}, {"name": "title_hash", "source": "response.body.title", "redact": true}]`)))
	if err != nil {
		t.Fatal(err)
	}
	op := c.Tools[0].Operations[0]
	if !op.Idempotent || !op.QueryDeclaredOnly || op.Approval != "none" || op.Injection.Name != "X-Api-Key" || op.Injection.Format != "{secret}" {
		t.Errorf("the operation is %+v, injection %+v", op, op.Injection)
	}
	if got := c.Credential(); got == nil || got.Kind != "api_key" || got.Scope != "Read and create issues" {
		t.Errorf("Credential() = %+v", got)
	}
}

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
		c, err := Parse([]byte(specWith(`"method": "GET", "path": "/{id}", "hosts": ["a.example"], "credential": ` + credential)))
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

// Every fault is found, and told with its place.
func TestFaultsOfASpec(t *testing.T) {
	op := "tools[0].operations[0]"
	good := `"method": "GET", "path": "/{id}", "hosts": ["a.example"], `
	for _, c := range []struct{ name, spec, want string }{
		{"empty", ``, "the JSON ends too early"},
		{"cut", `{"tools": [`, "tools: the JSON ends too early"},
		{"trailing data", specWith(goodFields) + "{}", "after the end"},
		{"two values", specWith(goodFields) + " null", "after the end"},
		{"not an object", `[]`, "it is not an object"},
		{"not UTF-8", "{\"tools\xff\": 1}", "it is not UTF-8"},
		{"byte order mark", "\ufeff" + specWith(goodFields), "it is not JSON"},
		{"too large", specWith(goodFields) + strings.Repeat(" ", MaxSize), "larger than 1048576 bytes"},
		{"too deep", strings.Repeat("[", 100000), "nested more than 16 deep"},
		{"schema v2", strings.Replace(specWith(goodFields), "connector.v1", "connector.v2", 1), `schema_version: it is "aileron.connector.v2"`},
		{"schema space", strings.Replace(specWith(goodFields), "aileron.connector.v1", " aileron.connector.v1", 1), "schema_version: it is"},
		{"schema missing", `{"connector": {"fqn": "hub://a/b", "version": "1.0.0"}, "tools": []}`, "schema_version: it is missing"},
		{"no connector", `{"schema_version": "aileron.connector.v1"}`, "connector: it is missing"},
		{"no tools", `{"schema_version": "aileron.connector.v1"}`, "tools: it has no entry"},
		{"fqn", strings.Replace(specWith(goodFields), "github://", "https://", 1), "connector.fqn: read the connector name"},
		{"fqn of one part", strings.Replace(specWith(goodFields), "acme/tracker", "acme", 1), "connector.fqn: read the connector name"},
		{"fqn with dots", strings.Replace(specWith(goodFields), "acme/tracker", "acme/..", 1), "connector.fqn: read the connector name"},
		{"version v", strings.Replace(specWith(goodFields), "1.2.0", "v1.2.0", 1), `connector.version: "v1.2.0" is not`},
		{"version range", strings.Replace(specWith(goodFields), "1.2.0", "^1.2.0", 1), "connector.version:"},
		{"version short", strings.Replace(specWith(goodFields), "1.2.0", "1.2", 1), "connector.version:"},
		{"version zeros", strings.Replace(specWith(goodFields), "1.2.0", "1.02.0", 1), "connector.version:"},
		{"unknown key", specWith(goodFields + `, "timeout": 1`), op + ".timeout: the key is not known"},
		{"folded key", specWith(goodFields + `, "HOSTS": ["evil.example"]`), op + `.HOSTS: the key is not known; "hosts" is`},
		{"long s", specWith(goodFields + `, "hoſts": ["evil.example"]`), op + `."ho\u017fts": the key is not known; "hosts" is`},
		{"repeated key", specWith(goodFields + `, "hosts": ["evil.example"]`), op + ".hosts: the key is there twice"},
		{"repeated escaped key", specWith(goodFields + `, "\u0068osts": ["evil.example"]`), op + ".hosts: the key is there twice"},
		{"null", specWith(goodFields + `, "summary": null`), op + ".summary: it is not a string"},
		{"number for text", specWith(`"method": 1, "path": "/", "hosts": ["a.example"]`), op + ".method: it is not a string"},
		{"text for list", specWith(`"hosts": "a.example"`), op + ".hosts: it is not a list"},
		{"number for host", specWith(`"hosts": [1]`), op + ".hosts[0]: it is not a string"},
		{"text for flag", specWith(good + `"ranges": "true"`), op + ".ranges: it is not true or false"},
		{"text for packed", specWith(good + `"packed": "yes"`), op + ".packed: it is not true or false"},
		{"no hosts", specWith(`"method": "GET"`), op + ".hosts: it has no entry"},
		{"too many hosts", specWith(`"hosts": [` + strings.Repeat(`"a.example", `, 300) + `"b.example"]`), op + ".hosts: it has more than 256 entries"},
		{"same host twice", specWith(`"hosts": ["a.example", "A.example:443"]`), op + ".hosts[1]: \"A.example:443\" is there twice"},
		{"operation is a text", `{"tools": [{"name": "t", "operations": ["x"]}]}`, op + ": it is not an object"},
		{"newline in summary", specWith(good + `"summary": "a\nb"`), op + ".summary: it has a line break"},
		{"escape code in description", specWith(good + `"description": "\u001b[2J"`), op + ".description: it has a line break"},
		{"hidden text", specWith(good + `"description": "ok\udb40\udc41"`), op + ".description: it has a line break"},
		{"right to left", specWith(good + `"description": "\u202egpj"`), op + ".description: it has a line break"},
		{"half a surrogate", specWith(good + `"summary": "\ud800"`), op + ".summary: it has a line break, a control character or a broken escape"},
		{"lower-case method", specWith(`"method": "get", "hosts": ["a.example"]`), op + `.method: "get" is not a method`},
		{"CONNECT", specWith(`"method": "CONNECT", "hosts": ["a.example"]`), op + `.method: "CONNECT"`},
		{"empty method", specWith(`"method": "", "hosts": ["a.example"]`), op + `.method: it is empty`},
		{"relative path", specWith(`"method": "GET", "path": "v1", "hosts": ["a.example"]`), op + ".path: it does not begin with a slash"},
		{"approval", specWith(good + `"approval": "always"`), op + `.approval: "always" is not "none" or "required"`},
		{"idempotency", specWith(good + `"idempotency": true`), op + ".idempotency: it is not a string"},
		{"upgrade", specWith(good + `"upgrade": "h2c"`), op + `.upgrade: "h2c" is not "websocket"`},
		{"query", specWith(good + `"query": "some"`), op + `.query: "some" is not`},
		{"input twice", specWith(good + `"inputs": [{"name": "q"}, {"name": "q"}]`), op + `.inputs[1].name: "q" is there twice`},
		{"input name", specWith(good + `"inputs": [{"name": "$(id)"}]`), op + ".inputs[0].name:"},
		{"input type", specWith(good + `"inputs": [{"name": "q", "type": "text"}]`), op + `.inputs[0].type: "text" is not`},
		{"audit path variable", specWith(good + `"audit": [{"name": "x", "source": "path.nope"}]`), op + ".audit[0].source:"},
		{"audit request body", specWith(good + `"audit": [{"name": "x", "source": "request.body.x"}]`), op + ".audit[0].source:"},
		{"audit modifier", specWith(good + `"audit": [{"name": "x", "source": "response.body.a|@this"}]`), op + ".audit[0].source:"},
		{"audit query", specWith(good + `"audit": [{"name": "x", "source": "response.body.a.#(b==1)"}]`), op + ".audit[0].source:"},
		{"audit multipath", specWith(good + `"audit": [{"name": "x", "source": "response.body.{a,b}"}]`), op + ".audit[0].source:"},
		{"audit lines", specWith(good + `"audit": [{"name": "x", "source": "response.body...0"}]`), op + ".audit[0].source:"},
		{"audit twice", specWith(good + `"audit": [{"name": "x", "source": "path.id"}, {"name": "x", "source": "path.id"}]`), op + `.audit[1].name: "x" is there twice`},
		{"credential kind", specWith(good + `"credential": "password"`), op + `.credential: the kind "password"`},
		{"credential null", specWith(good + `"credential": null`), op + ".credential: it is neither"},
		{"credential key", specWith(good + `"credential": {"kind": "bearer", "Inject": {}}`), op + ".credential.Inject: the key is not known"},
		{"credential without path", specWith(`"method": "GET", "hosts": ["a.example"], "credential": "bearer"`), op + ".credential: an operation with a credential must declare"},
		{"credential without method", specWith(`"path": "/", "hosts": ["a.example"], "credential": "bearer"`), op + ".credential: an operation with a credential must declare"},
		{"credential in clear", specWith(`"method": "GET", "path": "/", "hosts": ["a.example:80"], "credential": "bearer"`), op + ".hosts[0]: port 80 is in clear"},
		{"credential for a wildcard", specWith(`"method": "GET", "path": "/", "hosts": ["*.a.example"], "credential": "bearer"`), op + ".hosts[0]: a wildcard host"},
		{"inject Host", specWith(good + `"credential": {"kind": "bearer", "inject": {"name": "Host"}}`), op + `.credential.inject: "Host" is not`},
		{"inject Content-Length", specWith(good + `"credential": {"kind": "bearer", "inject": {"name": "content-length"}}`), op + ".credential.inject:"},
		{"inject Proxy-Authorization", specWith(good + `"credential": {"kind": "bearer", "inject": {"name": "Proxy-Authorization"}}`), op + ".credential.inject:"},
		{"inject no token", specWith(good + `"credential": {"kind": "bearer", "inject": {"name": "X Key"}}`), op + ".credential.inject:"},
		{"inject cookie line", specWith(good + `"credential": {"kind": "bearer", "inject": {"name": "X:"}}`), op + ".credential.inject:"},
		{"inject nowhere", specWith(good + `"credential": {"kind": "bearer", "inject": {"in": "body"}}`), op + `.credential.inject.in: "body" is not`},
		{"inject path", specWith(good + `"credential": {"kind": "bearer", "inject": {"in": "path", "name": "nope"}}`), op + ".credential.inject: the path has no variable"},
		{"inject query name", specWith(good + `"credential": {"kind": "bearer", "inject": {"in": "query"}}`), op + ".credential.inject:"},
		{"basic in the query", specWith(good + `"credential": {"kind": "basic", "inject": {"in": "query", "name": "k"}}`), op + ".credential.inject:"},
		{"format without secret", specWith(good + `"credential": {"kind": "bearer", "inject": {"format": "Bearer x"}}`), op + ".credential.inject: the format"},
		{"format with two", specWith(good + `"credential": {"kind": "bearer", "inject": {"format": "{secret}{secret}"}}`), op + ".credential.inject: the format"},
		{"two kinds", `{"schema_version": "aileron.connector.v1", "connector": {"fqn": "hub://a/b", "version": "1.0.0"}, "tools": [{"name": "t", "operations": [
			{"name": "a", "method": "GET", "path": "/a", "hosts": ["a.example"], "credential": "bearer"},
			{"name": "b", "method": "GET", "path": "/b", "hosts": ["a.example"], "credential": "basic"}]}]}`, "tools[0].operations[1].credential: it is the second kind"},
		{"operation twice", `{"tools": [{"name": "t", "operations": [{"name": "Get", "hosts": ["a.example"]}, {"name": "get", "hosts": ["a.example"]}]}]}`, `tools[0].operations[1].name: "get" is there twice`},
		{"tool twice", `{"tools": [{"name": "T", "operations": []}, {"name": "t", "operations": []}]}`, `tools[1].name: "t" is there twice`},
		{"empty tool", `{"tools": [{"name": "t", "operations": []}]}`, "tools[0].operations: it has no entry"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse([]byte(c.spec))
			if !slices.ContainsFunc(Faults(err), func(f *Fault) bool {
				return strings.HasPrefix(f.Error(), c.want) || f.Path == "" && strings.Contains(f.What, c.want) || c.name == "too deep" && strings.Contains(f.What, c.want)
			}) {
				t.Errorf("the faults are %q, want one that begins with %q", fmt.Sprint(err), c.want)
			}
		})
	}
}

func TestAllFaultsAreToldTogether(t *testing.T) {
	_, err := Load([]byte("[connector]\nnme = \"x\"\n"), []byte(specWith(`"method": "get", "path": "x", "hosts": ["127.0.0.1", "https://a.example"], "credential": "bearer", "extra": 1`)))
	var got []string
	for _, f := range Faults(err) {
		place, _, _ := strings.Cut(strings.TrimPrefix(f.Error(), f.File+": "), ": ")
		got = append(got, f.File+" "+place)
	}
	for _, want := range []string{"manifest.toml line 2", SpecFile + " tools[0].operations[0].method", SpecFile + " tools[0].operations[0].path",
		SpecFile + " tools[0].operations[0].hosts[0]", SpecFile + " tools[0].operations[0].hosts[1]", SpecFile + " tools[0].operations[0].extra"} {
		if !slices.Contains(got, want) {
			t.Errorf("the faults are at %q, want %q among them", got, want)
		}
	}
}

func TestFaultsAreBounded(t *testing.T) {
	_, err := Parse([]byte(`{` + strings.Repeat(`"tools": 1, `, 80000) + `"x": 1}`))
	list := Faults(err)
	if len(list) != maxFaults+1 || !strings.HasPrefix(list[maxFaults].What, "and ") {
		t.Errorf("there are %d faults, the last %v", len(list), list[len(list)-1])
	}
}

func TestHostsThatASpecMayNotName(t *testing.T) {
	for _, s := range []string{"https://x.example", "x.example/path", "u@x.example", "*", "*.test", "", "x.example:0", "x.example:99999", "x.example:", "x.example:+443",
		"x.example:0443", "127.0.0.1", "127.1", "0x7f.0.0.1", "2130706433", "169.254.169.254", "[::1]", "::1", "localhost", "a.localhost", "host.docker.internal",
		"aileron.internal", "printer.local", "x.test.", ".x.test", "x..test", "-x.test", "x-.test", "x_y.test", "x.test#", "x.test?", "x.test ", "*.*.test", "a.*.test", "x*.test",
		"аpi.test", "ß.test", strings.Repeat("a", 64) + ".test", strings.Repeat("a.", 130) + "test"} {
		if h, err := ParseHost(s); err == nil {
			t.Errorf("ParseHost(%q) = %v, want an error", s, h)
		}
	}
	for s, want := range map[string]string{"X.Test": "x.test:443", "x.test:8443": "x.test:8443", "*.X.test": "*.x.test:443", "xn--pi-7ia.test": "xn--pi-7ia.test:443", "a1.2b.test:80": "a1.2b.test:80"} {
		if h, err := ParseHost(s); err != nil || h.String() != want {
			t.Errorf("ParseHost(%q) = %v, %v, want %s", s, h, err, want)
		}
	}
}

func TestToolNamesThatWouldShadowOrLeave(t *testing.T) {
	for _, s := range []string{"..", ".", "-rf", ".bashrc", "sh", "bash", "Bash", "wget", "curl", "env", "sudo", "git", "ls", "claude", "ld.so", "ld-linux", "a/b", "a b", "a\\b", "CON",
		"aileron", "aileron-x", "python3.11", "$(id)", "é", strings.Repeat("a", 300)} {
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

func TestManifestIsReadStrictly(t *testing.T) {
	for _, c := range []struct{ name, add, want string }{
		{"unknown key", "\n[capabilities.files]\nread = true\n", "line 15: capabilities.files"},
		{"known key in a wrong table", "\nhosts = []\n", "line 15: provides.hosts: the key is not known"},
		{"folded key", "\n[Capabilities]\n", "line 15: Capabilities: the key is not known"},
		{"doubled key", "\nintents = []\n", "line 15: Key 'provides.intents' has already been defined"},
		{"doubled table", "\n[connector]\n", "line 15: Key 'connector' has already been defined"},
		{"syntax", "\nx = \n", "line 15: "},
		{"wrong type", "\n[capabilities.runtime]\nimports = 1\n", "line 16 (last key \"capabilities.runtime.imports\"): "},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := ParseManifest([]byte(goodManifest + c.add))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, want %q in it", err, c.want)
			}
		})
	}
	for _, c := range []struct{ old, new, want string }{
		{"github://acme/tracker", "acme", "line 2: connector.name: read the connector name"},
		{"1.2.0", "latest", "line 3: connector.version: \"latest\""},
		{"api.tracker.example:443", "10.0.0.1", "line 6: capabilities.network.hosts[0]"},
		{"api_key", "token", "line 9: capabilities.credential.kind"},
		{"read_issues", "read issues", "line 13: provides.intents[0]"},
		{"Read and", "Read\\nand", "line 10: capabilities.credential.scope"},
	} {
		_, err := ParseManifest([]byte(strings.Replace(goodManifest, c.old, c.new, 1)))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("with %q the error is %v, want %q in it", c.new, err, c.want)
		}
	}
}

// The decoder would take half a minute for these.
func TestManifestsMadeToBeSlowAreRefused(t *testing.T) {
	for _, text := range []string{"a" + strings.Repeat(".a", 30000) + " = 1", "[a" + strings.Repeat(".a", 30000) + "]", "a = " + strings.Repeat("{b=", 15000), strings.Repeat("#", maxManifest+1)} {
		if _, err := ParseManifest([]byte(text)); err == nil || !strings.Contains(err.Error(), "more than") && !strings.Contains(err.Error(), "larger than") {
			t.Errorf("%.20s…: %.100v", text, err)
		}
	}
	if _, err := ParseManifest([]byte(strings.Repeat("a.b = 1\n", 8000))); len(Faults(err)) > maxFaults+1 {
		t.Errorf("there are %d faults", len(Faults(err)))
	}
}

func TestSpecIsHeldAgainstTheManifest(t *testing.T) {
	for _, c := range []struct{ name, manifest, spec, want string }{
		{"name", strings.Replace(goodManifest, "acme", "other", 1), specWith(goodFields), "connector.fqn: it is github://acme/tracker, and the manifest's name is github://other/tracker"},
		{"version", strings.Replace(goodManifest, "1.2.0", "1.2.1", 1), specWith(goodFields), "connector.version: it is 1.2.0"},
		{"host", goodManifest, specWith(strings.Replace(goodFields, "api.", "apx.", 1)), "tools[0].operations[0].hosts[0]: apx.tracker.example:443 is not among"},
		{"port", goodManifest, specWith(strings.Replace(goodFields, "example\"", "example:8443\"", 1)), "tools[0].operations[0].hosts[0]: api.tracker.example:8443 is not among"},
		{"kind", goodManifest, specWith(strings.Replace(goodFields, "api_key", "bearer", 1)), "tools[0].operations[0].credential: its kind is bearer"},
		{"no credential asked for", strings.Replace(strings.Replace(goodManifest, "[capabilities.credential]\nkind = \"api_key\"\n", "", 1), "scope = \"Read and create issues\"\n", "", 1),
			specWith(goodFields), "tools[0].operations[0].credential: the manifest asks for no credential"},
		{"credential not used", goodManifest, specWith(`"hosts": ["api.tracker.example"]`), "tools: no operation uses the credential"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Load([]byte(c.manifest), []byte(c.spec))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, want %q in it", err, c.want)
			}
		})
	}
}

func TestEveryExampleLoads(t *testing.T) {
	dirs, err := filepath.Glob("../examples/connectors/*")
	if err != nil || len(dirs) < 3 {
		t.Fatalf("the examples are %q, %v", dirs, err)
	}
	var all []*Connector
	for _, dir := range dirs {
		manifest, err1 := os.ReadFile(filepath.Join(dir, ManifestFile))
		spec, err2 := os.ReadFile(filepath.Join(dir, SpecFile))
		readme, err3 := os.ReadFile(filepath.Join(dir, "README.md"))
		if err1 != nil || err2 != nil || err3 != nil {
			t.Fatal(err1, err2, err3)
		}
		c, err := Load(manifest, spec)
		if err != nil {
			t.Fatalf("%s: %v", dir, err)
		}
		if !strings.Contains(string(readme), string(c.FQN)) {
			t.Errorf("%s/README.md does not name %s", dir, c.FQN)
		}
		all = append(all, c)
	}
	if _, err := NewIndex(all); err != nil {
		t.Error(err)
	}
}

func TestTheManualsExampleLoads(t *testing.T) {
	data, err := os.ReadFile("../docs/connectors.md")
	if err != nil {
		t.Fatal(err)
	}
	block := func(kind string) []byte {
		_, rest, _ := strings.Cut(string(data), "```"+kind+"\n")
		text, _, _ := strings.Cut(rest, "```")
		return []byte(text)
	}
	c, err := Load(block("toml"), block("json"))
	if err != nil {
		t.Fatal(err)
	}
	if op := c.Tools[0].Operations[1]; op.Injection.Format != "{secret}" || op.Idempotent {
		t.Errorf("issues.create is %+v", op)
	}
}
