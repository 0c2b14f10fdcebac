package openapi

import (
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/internal/foreign"
	"github.com/ALRubinger/aileron/spec/scaffold"
)

var update = flag.Bool("update", false, "write testdata/*.golden anew")

// The excerpt has what descriptions of large public APIs have, in YAML. The golden file is the connector and what was
// left out of it.
func TestTheExcerpt(t *testing.T) {
	data := must.Get(os.ReadFile("testdata/tracker.yaml"))(t)
	c, leftOut, err := Connector(data, Options{FQN: "github://acme/tracker"})
	if err != nil {
		t.Fatal(err)
	}
	files := must.Get(c.Files())(t)
	got := strings.Join(leftOut, "\n") + "\n\n" + string(files[spec.ManifestFile]) + "\n" + string(files[spec.SpecFile])
	const golden = "testdata/tracker.golden"
	if *update {
		must.Do(t, os.WriteFile(golden, []byte(got), 0o600))
	}
	want, err := os.ReadFile(golden)
	if err != nil || got != string(want) {
		t.Errorf("%s is not what it was (%v):\n%s", golden, err, got)
	}
}

// minimal is a document with a path item and components.
func minimal(item, rest string) []byte {
	return []byte(`{"openapi":"3.0.3","info":{"title":"T"},"servers":[{"url":"https://api.t.example"}],"paths":{"/a":` +
		item + `}` + rest + `}`)
}

func made(t *testing.T, data []byte, opts Options) (*scaffold.Connector, string) {
	t.Helper()
	opts.FQN = "github://acme/tracker"
	c, leftOut, err := Connector(data, opts)
	if err != nil {
		t.Fatalf("%v; left out:\n%s", err, strings.Join(leftOut, "\n"))
	}
	must.Get(c.Files())(t)
	return c, strings.Join(leftOut, "\n")
}

func TestCredentials(t *testing.T) {
	for _, w := range []struct{ scheme, kind, in, name, leftOut string }{
		{`{"type":"http","scheme":"Bearer"}`, "bearer", "", "", ""},
		{`{"type":"http","scheme":"basic"}`, "basic", "", "", ""},
		{`{"type":"apiKey","in":"header","name":"X-Key"}`, "api_key", "header", "X-Key", ""},
		{`{"type":"apiKey","in":"query","name":"key"}`, "api_key", "query", "key", ""},
		{`{"type":"oauth2","flows":{}}`, "bearer", "", "", "the login of OAuth 2, as no flow has https"},
		{`{"type":"oauth2","flows":{"authorizationCode":{"authorizationUrl":"/auth","tokenUrl":"/token"}}}`, "bearer", "", "",
			"the login of OAuth 2, as no flow has https"},
		{`{"type":"oauth2","flows":{"authorizationCode":{"authorizationUrl":"https://l.t.example/auth",` +
			`"tokenUrl":"https://l.t.example/token","scopes":{"read":"r","admin":"a"}}}}`, "oauth2", "", "", ""},
		{`{"type":"openIdConnect"}`, "bearer", "", "", "the login of OpenID Connect"},
		{`{"type":"apiKey","in":"cookie","name":"sid"}`, "", "", "", "operations that need a cookie: GET /a"},
		{`{"type":"mutualTLS"}`, "", "", "", "operations that need a client certificate: GET /a"},
		{`{"type":"http","scheme":"digest"}`, "", "", "", "a kind of credential that no connector has: GET /a"},
		{`{"type":"apiKey","in":"header","name":"Host"}`, "", "", "", `"Host" is not a header field that a credential may`},
	} {
		data := minimal(`{"get":{"security":[{"s":["read"]}]},"put":{"security":[]}}`,
			`,"components":{"securitySchemes":{"s":`+w.scheme+`}}`)
		c, leftOut := made(t, data, Options{})
		if w.kind == "" {
			if c.Credential != nil || len(c.Operations) != 1 || !strings.Contains(leftOut, w.leftOut) {
				t.Errorf("%s: %+v, left out:\n%s", w.scheme, c.Operations, leftOut)
			}
			continue
		}
		got := c.Operations[0].Credential
		inject := scaffold.Inject{}
		if got != nil && got.Inject != nil {
			inject = *got.Inject
		}
		if got == nil || string(got.Kind) != w.kind || inject.In != w.in || inject.Name != w.name ||
			c.Operations[1].Credential != nil || !strings.Contains(leftOut, w.leftOut) {
			t.Errorf("%s: %+v %+v, left out:\n%s", w.scheme, got, inject, leftOut)
		}
	}
}

// The login of a document is in the manifest, with the scopes that the operations ask for and the host of its tokens.
func TestLoginsOfADocument(t *testing.T) {
	const api = `{"get":{"security":[{"s":["mail.read","a\"b"]}]},"put":{"security":[{"s":["mail.send","mail.read"]}]}}`
	for flows, want := range map[string]string{
		`"implicit":{},"clientCredentials":{"tokenUrl":"https://l.t.example/c"},"authorizationCode":{` +
			`"authorizationUrl":"https://w.t.example/auth?x=1","tokenUrl":"https://l.t.example/token"}`: `
[capabilities.credential.oauth2]
authorize_url = "https://w.t.example/auth?x=1"
token_url = "https://l.t.example/token"
`,
		`"deviceAuthorization":{"deviceAuthorizationUrl":"https://l.t.example/device",` +
			`"tokenUrl":"https://l.t.example/token"}`: `
grant = "device_code"
device_authorization_url = "https://l.t.example/device"
token_url = "https://l.t.example/token"
`,
		`"authorizationCode":{"authorizationUrl":"/a","tokenUrl":"/t"},` +
			`"clientCredentials":{"tokenUrl":"https://l.t.example/c"}`: `
grant = "client_credentials"
token_url = "https://l.t.example/c"
`,
	} {
		c, leftOut := made(t, minimal(api, `,"components":{"securitySchemes":{"s":{"type":"oauth2","flows":{`+flows+`}}}}`),
			Options{})
		manifest := string(must.Get(c.Files())(t)[spec.ManifestFile])
		for _, part := range []string{want, "scopes = [\n  \"mail.read\",\n  \"mail.send\",\n]",
			"hosts = [\n  \"api.t.example:443\",\n  \"l.t.example:443\",\n]"} {
			if !strings.Contains(manifest, part) {
				t.Errorf("%s: the manifest has no %q:\n%s", flows, part, manifest)
			}
		}
		if !strings.Contains(leftOut, `scopes that are not plain words: a"b`) || c.Credential.Login.ClientID != "" {
			t.Errorf("%s: left out:\n%s", flows, leftOut)
		}
	}
	c, leftOut := made(t, minimal(`{"get":{}}`, ""), Options{Credential: spec.KindOAuth2})
	if got := c.Credential.Login; got == nil || got.TokenURL != "https://api.t.example/oauth2/token" ||
		!strings.Contains(leftOut, "stand-ins") {
		t.Errorf("--credential oauth2 makes %+v, left out:\n%s", got, leftOut)
	}
}

// An operation that issues tokens is left out where it would have the credential: aileron itself asks for them.
func TestOperationsThatIssueTokensAreLeftOut(t *testing.T) {
	const api = `{"get":{"security":[{"s":[]}]}},"/oauth/keys":{"get":{}},` +
		`"/oauth/token":{"post":{"security":[{"s":[]}]}}`
	c, leftOut := made(t, minimal(api, `,"components":{"securitySchemes":{"s":{"type":"oauth2","flows":{`+
		`"clientCredentials":{"tokenUrl":"https://api.t.example/oauth/token"}}}}}`), Options{})
	if len(c.Operations) != 2 || !strings.Contains(leftOut, "only aileron may ask for: POST /oauth/token") {
		t.Errorf("the operations are %+v, left out:\n%s", c.Operations, leftOut)
	}
}

// Options have precedence over the document.
func TestOptions(t *testing.T) {
	data := minimal(`{"get":{"operationId":"a","tags":["x"]},"post":{"operationId":"b"},"put":{"tags":["xy"]}}`, "")
	for _, w := range []struct {
		only []string
		want string
	}{
		{nil, "a b a.put"}, {[]string{"x"}, "a"}, {[]string{"x*"}, "a a.put"}, {[]string{"b", "GET /*"}, "a b"},
		{[]string{"P* /a"}, "b a.put"}, {[]string{"*"}, "a b a.put"},
	} {
		c, _ := made(t, data, Options{Only: w.only, Host: "other.t.example", Credential: spec.KindBasic})
		var names []string
		for _, op := range c.Operations {
			names = append(names, op.Name)
			if op.Hosts[0] != "other.t.example" || len(op.Hosts) != 1 || op.Credential.Kind != spec.KindBasic {
				t.Errorf("%+v", op)
			}
		}
		if got := strings.Join(names, " "); got != w.want {
			t.Errorf("--only %q makes %q, want %q", w.only, got, w.want)
		}
	}
	if c, _ := made(t, data, Options{Credential: NoCredential}); c.Credential != nil {
		t.Errorf("NoCredential makes %+v", c.Credential)
	}
}

// Every method but those that only read needs approval.
func TestWritesNeedApproval(t *testing.T) {
	c, _ := made(t, minimal(`{"get":{},"head":{},"options":{},"post":{},"put":{},"patch":{},"delete":{}}`, ""), Options{})
	for _, op := range c.Operations {
		reads := op.Method == "GET" || op.Method == "HEAD" || op.Method == "OPTIONS"
		if reads != (op.Approval == "") || reads != (op.Idempotency == "idempotent") {
			t.Errorf("%s: approval %q, idempotency %q", op.Method, op.Approval, op.Idempotency)
		}
	}
}

// A name that a connector cannot have becomes one, or its operation is left out. Names are unique.
func TestNames(t *testing.T) {
	for id, want := range map[string]string{
		"issues/list": "issues.list", "Get Thing!": "Get-Thing", "_x": "x", "": "a.get", "\u202e": "a.get",
		"日本": "a.get", strings.Repeat("x", 300): strings.Repeat("x", 90),
	} {
		text := must.Get(json.Marshal(id))(t)
		c, _ := made(t, minimal(`{"get":{"operationId":`+string(text)+`},"put":{"operationId":`+string(text)+`}}`, ""),
			Options{})
		second := want + "-2"
		if want == "a.get" {
			second = "a.put"
		}
		if c.Operations[0].Name != want || c.Operations[1].Name != second {
			t.Errorf("%q becomes %q and %q, want %q and %q", id, c.Operations[0].Name, c.Operations[1].Name, want, second)
		}
	}
}

// Text of the document cannot control a terminal, nor stand on two lines.
func TestControlCharactersAreLeftOut(t *testing.T) {
	const bad = `\u001b[31mred\u0007 \u202eevil\u2028x\ufffd\n\ud800`
	c, leftOut := made(t, minimal(`{"get":{"summary":"`+bad+`","parameters":[{"name":"q","in":"query","description":"`+bad+
		`"},{"name":"`+bad+`","in":"query"},{"name":"`+bad+`","in":"cookie"}]}}`, `,"x":{"$ref":"`+bad+`"}`), Options{})
	text := leftOut + c.Operations[0].Summary + c.Operations[0].Inputs[0].Description
	if c.Operations[0].Summary != "[31mred evil x" || strings.ContainsAny(text, "\x1b\a\u202e\u2028\ufffd") {
		t.Errorf("%+v, left out:\n%q", c.Operations[0], leftOut)
	}
}

// A hostile or broken document fails with a reason, or is read without what is hostile in it.
func TestHostileDocuments(t *testing.T) {
	bomb := "openapi: 3.0.3\nservers: [{url: 'https://api.t.example'}]\nx0: &a0 [l,l,l,l,l,l,l,l,l]\n"
	for i := 1; i < 40; i++ {
		bomb += fmt.Sprintf("x%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 9), ","))
	}
	var chain strings.Builder
	for i := range 20000 {
		fmt.Fprintf(&chain, `"S%d":{"$ref":"#/components/schemas/S%d"},`, i, i+1)
	}
	fan := ""
	for i := range 40 {
		next := fmt.Sprintf(`{"$ref":"#/components/schemas/F%d"}`, i+1)
		fan += fmt.Sprintf(`"F%d":{"allOf":[%s]},`, i, strings.TrimSuffix(strings.Repeat(next+",", 9), ","))
	}
	body := func(schema string) string {
		return `{"post":{"requestBody":{"content":{"application/json":{"schema":` + schema + `}}}}}`
	}
	deep := strings.Repeat(`{"properties":{"a":`, 5000) + "{}" + strings.Repeat("}}", 5000)
	for _, w := range []struct{ name, doc, want string }{
		{"empty", "", "it is not YAML: EOF"},
		{"a list", "[]", "it is not an object"},
		{"torn", `{"openapi":"3.0.3"`, "the JSON ends too early"},
		{"two values", `{"openapi":"3.0.3"} {}`, "there is something after its end"},
		{"two documents", "openapi: 3.0.3\n---\na: b\n", "it is more than one YAML document"},
		{"not UTF-8", "openapi: \xff", "it is not UTF-8"},
		{"Swagger 1", `{"swaggerVersion":"1.2","swagger":"1.2"}`, "another version of Swagger than 2.0"},
		{"no version", `{}`, `no version in "openapi"`},
		{"another version", `{"openapi":"4.0.0"}`, "is of OpenAPI 4.0.0"},
		{"nothing", `{"openapi":"3.0.3"}`, "has no operation that a connector can declare"},
		{"large", "openapi: 3.0.3 #" + strings.Repeat("x", MaxSize), "it is larger than 16777216 bytes"},
		{"deep JSON", string(minimal(body(deep), "")), "it is nested more than 200 deep"},
		{"deep YAML", "openapi: 3.0.3\nx: " + strings.Repeat("[", 9000) + strings.Repeat("]", 9000), "more than 200 deep"},
		{"many values", `{"x":[` + strings.Repeat("1,", maxNodes) + `1]}`, "it has more than 2097152 values"},
		{"many lines", "x:\n" + strings.Repeat("- a\n", maxLines+1), "it has more than 600000 lines"},
		{"aliases", bomb, "no operation that a connector can declare"},
		{"an alias in itself", "openapi: 3.0.3\nx: &a [*a]\n", "an alias is inside its own anchor"},
		{"a circle", string(minimal(body(`{"$ref":"#/paths/~1a/post/requestBody/content/application~1json/schema"}`), "")),
			"leads to itself"},
		{"a schema of itself", string(minimal(body(`{"allOf":[{"$ref":"#"},{"$ref":"#/x"}]}`),
			`,"x":{"allOf":[{"$ref":"#/x"},{"$ref":"#/x"}]}`)), ""},
		{"a chain", string(minimal(body(`{"$ref":"#/components/schemas/S0"}`),
			`,"components":{"schemas":{`+chain.String()+`"S20000":{}}}`)), "through too many others"},
		{"a fan", string(minimal(body(`{"$ref":"#/components/schemas/F0"}`),
			`,"components":{"schemas":{`+fan+`"F40":{}}}`)), ""},
	} {
		t.Run(w.name, func(t *testing.T) {
			_, _, err := Connector([]byte(w.doc), Options{FQN: "github://acme/tracker"})
			if (err == nil) != (w.want == "") || err != nil && !strings.Contains(err.Error(), w.want) {
				t.Errorf("%.200v, want %q", err, w.want)
			}
			if err != nil && len(err.Error()) > 400 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
}

// large returns a document like those of large public APIs: operations with parameters, bodies and long responses.
func large(t *testing.T, operations, bytesEach int) []byte {
	t.Helper()
	paths := map[string]any{}
	for i := range operations {
		op := map[string]any{
			"operationId": fmt.Sprintf("group%d/op%d", i%40, i), "tags": []string{fmt.Sprintf("group%d", i%40)},
			"summary": fmt.Sprintf("Do the thing number %d", i), "description": strings.Repeat("Long. ", bytesEach/12),
			"parameters": []any{map[string]any{"name": "owner", "in": "path", "required": true,
				"schema": map[string]any{"type": "string"}}, map[string]any{"$ref": "#/components/parameters/page"}},
			"requestBody": map[string]any{"content": map[string]any{"application/json": map[string]any{"schema": map[string]any{
				"$ref": "#/components/schemas/thing"}}}},
			"responses": map[string]any{"200": map[string]any{"description": strings.Repeat("Text. ", bytesEach/12)}},
		}
		paths[fmt.Sprintf("/owners/{owner}/things%d", i)] = map[string]any{"post": op}
	}
	data, err := json.Marshal(map[string]any{"openapi": "3.0.3", "info": map[string]any{"title": "Large"},
		"servers": []any{map[string]any{"url": "https://api.large.example"}}, "paths": paths,
		"components": map[string]any{
			"parameters": map[string]any{"page": map[string]any{"name": "page", "in": "query", "description": "The page"}},
			"schemas": map[string]any{"thing": map[string]any{"required": []string{"a"}, "properties": map[string]any{
				"a": map[string]any{"type": "string", "description": strings.Repeat("The a. ", 40)},
				"c": map[string]any{"description": strings.Repeat("The c. ", 40)},
				"d": map[string]any{"description": strings.Repeat("The d. ", 40)},
				"e": map[string]any{"description": strings.Repeat("The e. ", 40)},
				"b": map[string]any{"$ref": "#/components/schemas/thing"}}}}}})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// A document of 12 MiB with a thousand operations becomes a connector, in memory that is a multiple of its size.
func TestALargeDocument(t *testing.T) {
	data := large(t, 1000, 12<<10)
	if len(data) < 12<<20 {
		t.Fatalf("it has %d bytes", len(data))
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	c, leftOut := made(t, data, Options{})
	runtime.ReadMemStats(&after)
	if len(c.Operations) != 1000 || len(c.Operations[0].Inputs) != 7 ||
		!strings.Contains(leftOut, "of the descriptions of inputs, as") {
		t.Errorf("%d operations, the first %+v; left out:\n%s", len(c.Operations), c.Operations[0], leftOut)
	}
	if size, err := c.Size(); err != nil || size > spec.MaxSpecSize {
		t.Errorf("the specification has %d bytes, %v", size, err)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 40*uint64(len(data)) {
		t.Errorf("%d bytes were allocated for %d", used, len(data))
	}
}

// More operations than a connector holds are an error that names what to do; what is selected becomes a connector.
func TestTooManyOperations(t *testing.T) {
	data := large(t, 5200, 0)
	_, _, err := Connector(data, Options{FQN: "github://acme/tracker"})
	if err == nil || !strings.Contains(err.Error(), "has 5200 operations") || !strings.Contains(hint.Of(err), "--only") {
		t.Errorf("5200 operations: %v, hint %q", err, hint.Of(err))
	}
	_, _, err = Connector(large(t, 4900, 0), Options{FQN: "github://acme/tracker"})
	if err == nil || !strings.Contains(err.Error(), "make a specification of") ||
		!strings.Contains(hint.Of(err), "--only") {
		t.Errorf("4900 operations: %v, hint %q", err, hint.Of(err))
	}
	if c, _ := made(t, data, Options{Only: []string{"group7"}}); len(c.Operations) != 130 {
		t.Errorf("a group has %d operations, want 130", len(c.Operations))
	}
}

// Whatever the document is, the connector loads or there is a reason, and lines are bounded and plain.
func FuzzConnector(f *testing.F) {
	excerpt := must.Get(os.ReadFile("testdata/tracker.yaml"))(f)
	f.Add(excerpt)
	f.Add(minimal(`{"get":{"parameters":[{"name":"a","in":"query","schema":{"enum":["x","y"]}}]}}`, ""))
	f.Add([]byte("openapi: 3.0.3\nservers: [{url: 'https://a.example/{b}'}]\npaths: {/x: &a {get: {}}, /y: *a}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, leftOut, err := Connector(data, Options{FQN: "github://acme/tracker"})
		if err == nil {
			if _, err := c.Files(); err != nil {
				t.Errorf("the connector does not load: %v", errors.Unwrap(err))
			}
		}
		if len(leftOut) > foreign.MaxNotes+1 {
			t.Errorf("%d lines", len(leftOut))
		}
		for _, line := range leftOut {
			if len(line) > 800 || foreign.Clean(line, len(line)) != line {
				t.Errorf("the line %q", line)
			}
		}
	})
}

// What operations share by references is not read whole for each of them: without the bounds these take hours.
func TestWhatOperationsShareIsBounded(t *testing.T) {
	const many = 1 << 18
	numbers := "[" + strings.Repeat("0,", many) + "0]"
	names := "[" + strings.Repeat(`"a",`, many) + `"a"]`
	var members strings.Builder
	for i := range many / 8 {
		fmt.Fprintf(&members, `"x%d":0,`, i)
	}
	keys := members.String()
	ref, body := `{"$ref":"#/x"}`, `{"post":{"requestBody":{"content":{"application/json":{"schema":{"$ref":"#/x"}}}}}}`
	for name, w := range map[string]struct{ item, shared string }{
		"parameters":     {ref, `{"get":{},"parameters":` + numbers + `}`},
		"methods":        {ref, `{` + keys + `"get":{}}`},
		"required":       {body, `{"required":` + names + `}`},
		"combined":       {body, `{"allOf":` + numbers + `}`},
		"types":          {body, `{"properties":{"a":{"type":` + names + `}}}`},
		"media types":    {`{"post":{"requestBody":{"$ref":"#/x"}}}`, `{"content":{` + keys + `"application/json":{}}}`},
		"long reference": {body, `{"$ref":"#` + strings.Repeat("/~1", many) + `"}`},
	} {
		t.Run(name, func(t *testing.T) {
			paths := ""
			for i := range 2000 {
				paths += fmt.Sprintf(`"/p%d":%s,`, i, w.item)
			}
			_, _, err := Connector([]byte(`{"openapi":"3.0.3","servers":[{"url":"https://api.t.example"}],"paths":{`+paths+
				`"/last":{"get":{}}},"x":`+w.shared+`}`), Options{FQN: "github://acme/tracker"})
			if err != nil && (name != "long reference" || !strings.Contains(err.Error(), "leads nowhere")) {
				t.Errorf("%.200v", err)
			}
		})
	}
}

// A schema that many others refer to is read once for a body: not once for each way to it.
func TestASchemaIsCollectedOnce(t *testing.T) {
	schemas := ""
	for i := range maxCombined {
		next := fmt.Sprintf(`{"$ref":"#/components/schemas/F%d"}`, i+1)
		schemas += fmt.Sprintf(`"F%d":{"allOf":[%s,%s,%s,%s]},`, i, next, next, next, next)
	}
	r := &reader{opts: Options{FQN: "github://acme/tracker"}}
	var err error
	r.root, err = (&builder{notes: &r.notes}).parse(minimal(`{}`,
		`,"components":{"schemas":{`+schemas+`"F8":{"properties":{"a":{}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	p := properties{inputs: &inputs{reader: r}, required: map[string]bool{}, of: map[string]*node{},
		seen: map[*node]bool{}}
	p.collect(r.root.get("components").get("schemas").get("F0"), 0)
	if len(p.names) != 1 || r.steps > 100 {
		t.Errorf("%d properties in %d steps", len(p.names), r.steps)
	}
}

// A path with a segment that is no variable and no plain text is left out, and not read as another path.
func TestPathsThatCannotBeDeclared(t *testing.T) {
	for _, path := range []string{"/a}", "/{a", "/{}", "/{a}{b}", "/{a}.{b}", "/{a}%2Ejson", "/a b", "/a//b", "/a/../b",
		"/a?b=c", "/a#b", "/{a}/{a}", "a"} {
		doc := strings.Replace(string(minimal(`{"get":{}}`, "")), `"/a"`, `"`+path+`":{"get":{}},"/fine"`, 1)
		c, leftOut := made(t, []byte(doc), Options{})
		if path == "/{}" || path == "/{a}/{a}" { // these have a safe name
			if len(c.Operations) != 2 {
				t.Errorf("%s: %+v, left out:\n%s", path, c.Operations, leftOut)
			}
			continue
		}
		if len(c.Operations) != 1 || !strings.Contains(leftOut, "operations that cannot be declared: GET "+path) {
			t.Errorf("%s: %+v, left out:\n%s", path, c.Operations, leftOut)
		}
	}
}

// A form has its inputs, and what nests in an input is in its schema, whatever refers to itself.
func TestBodiesOfADocument(t *testing.T) {
	c, leftOut := made(t, minimal(`{"post":{"requestBody":{"required":true,"content":{"application/x-www-form-urlencoded":{
		"encoding":{"metadata":{"style":"deepObject","explode":true},"tags":{"explode":false}},"schema":{"type":"object",
		"required":["email"],"properties":{"email":{"type":"string"},"metadata":{"anyOf":[{"type":"object"},{"enum":[""]}]},
		"tags":{"type":"array","items":{"type":"string"}},"items":{"type":"array","items":{"$ref":"#/components/schemas/I"}},
		"when":{"type":"object","properties":{"at":{"type":"integer","enum":[1,2]}},"additionalProperties":false}}}}}}},
		"put":{"requestBody":{"content":{"multipart/form-data":{"encoding":{"link":{"style":"deepObject","explode":true},
		"about":{"style":"deepObject"},"meta":{"style":"form"}},"schema":{"type":"object","properties":{
		"file":{"type":"string","format":"binary"},"about":{"type":"string"},
		"files":{"type":"array","items":{"type":"string","format":"binary"}},"link":{"type":"object","properties":{
		"create":{"type":"boolean"}}},"meta":{"type":"object"},"image":{"anyOf":[{"type":"string","format":"binary"},
		{"type":"array","items":{"type":"string","format":"binary"}}]},"photo":{"oneOf":[{"type":"string"},
		{"type":"string","format":"binary"}]}}}}}}},
		"patch":{"requestBody":{"content":{"application/json-patch+json":{"schema":{"type":"array"}},
		"application/merge-patch+json":{"schema":{"$ref":"#/components/schemas/I"}}}}},
		"options":{"requestBody":{"content":{"text/plain":{"schema":{"type":"string"}}}}}}`,
		`,"components":{"schemas":{"I":{"type":"object","required":["price"],"properties":{"price":{"type":"integer"},
		"note":{"type":"string","nullable":true},"id":{"type":"string","readOnly":true},
		"parts":{"type":"array","items":{"$ref":"#/components/schemas/I"}},
		"both":{"allOf":[{"$ref":"#/components/schemas/I"},{"type":"object","properties":{"more":{}}}]}}}}}`), Options{})
	byMethod := map[string]scaffold.Operation{}
	for _, op := range c.Operations {
		byMethod[op.Method] = op
	}
	inputs := func(op scaffold.Operation) string { return string(must.Get(json.Marshal(op.Inputs))(t)) }
	post := inputs(byMethod["POST"])
	for _, want := range []string{
		`{"name":"email","in":"body","type":"string","required":true}`,
		`{"name":"metadata","in":"body","style":"deepObject"}`,
		`{"name":"tags","in":"body","type":"array","explode":false,"schema":{"type":"array","items":{"type":"string"}}}`,
		`{"name":"items","in":"body","type":"array","style":"deepObject","schema":{"type":"array","items":{"type":"object",` +
			`"properties":{"price":{"type":"integer"},"note":{"type":["string","null"]},"parts":{"type":"array","items":{`,
		`"schema":{"type":"object","properties":{"at":{"type":"integer","enum":[1,2]}},"additionalProperties":false}}`,
	} {
		if !strings.Contains(post, want) {
			t.Errorf("the form has not %s in\n%s", want, post)
		}
	}
	if op := byMethod["POST"]; op.Body != "form" || strings.Contains(post, `"id"`) {
		t.Errorf("the body is a %s: %s", op.Body, post)
	}
	parts := `[{"name":"file","in":"body","type":"file"},{"name":"about","in":"body","type":"string"},` +
		`{"name":"files","in":"body","type":"files"},{"name":"link","in":"body","type":"object","style":"deepObject",` +
		`"schema":{"type":"object","properties":{"create":{"type":"boolean"}}}},` +
		`{"name":"meta","in":"body","type":"object"},{"name":"image","in":"body","type":"files"},` +
		`{"name":"photo","in":"body"}]`
	if got := inputs(byMethod["PUT"]); byMethod["PUT"].Body != "multipart" || got != parts {
		t.Errorf("the parts are %s\nwant %s", got, parts)
	}
	if op := byMethod["PATCH"]; op.Body != "" || op.ContentType != "application/merge-patch+json" || len(op.Inputs) != 4 {
		t.Errorf("the patch is %+v", op)
	}
	if op := byMethod["OPTIONS"]; op.Body != "text" || len(op.Inputs) != 1 {
		t.Errorf("the text is %+v", op)
	}
	if want := "objects in forms whose syntax the document does not name"; !strings.Contains(leftOut, want) {
		t.Errorf("left out:\n%s", leftOut)
	}
}

// What cannot be resolved fails with its reason, and never becomes an operation without it. A document below the
// directory of the first one is read, and nothing else is.
func TestReferencesToOtherDocuments(t *testing.T) {
	dir := t.TempDir()
	beside := filepath.Join(dir, "api")
	must.Do(t, os.MkdirAll(filepath.Join(beside, "parts", "dir"), 0o755))
	for name, text := range map[string]string{
		"secret.json": `{"p":{"name":"x","in":"query"}}`,
		"api/parts/a.yaml": "p: {$ref: 'b.json#/q'}\nlocal: {$ref: '#/own'}\nown: {name: own, in: query}\n" +
			"loop: {$ref: 'b.json#/loop'}\n",
		"api/parts/b.json": `{"q":{"name":"q","in":"query"},"loop":{"$ref":"a.yaml#/loop"}}`,
		"api/parts/bad":    `{`, "api/parts/ü b.json": `{"p":{"name":"u","in":"query"}}`,
	} {
		must.Do(t, os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), []byte(text), 0o600))
	}
	must.Do(t, os.Symlink("../../secret.json", filepath.Join(beside, "parts", "link")))
	must.Do(t, syscall.Mkfifo(filepath.Join(beside, "parts", "pipe"), 0o600))
	for ref, want := range map[string]string{
		"parts/a.yaml#/p": "q", "./parts/a.yaml#/local": "own", "parts/../parts/b.json#/q": "q",
		"parts/%C3%BC%20b.json#/p": "u",
		"parts/a.yaml#/none":       "!leads nowhere", "#/none": "!leads nowhere",
		"parts/none.json":    "!cannot be read: no such",
		"parts/a.yaml#/loop": "!leads to itself", "../secret.json#/p": "!is not below", "parts/link#/p": "!cannot be read",
		"/etc/passwd": "!is no file beside", "https://t.example/a.json#/p": "!is no file beside",
		"parts/dir":  "!cannot be read",
		"parts/pipe": "!cannot be read: it is not a file", "parts/bad": "!cannot be read: the JSON ends too early",
		`parts\\a.yaml`: "!is no file beside", "file:///etc/passwd": "!is no file beside",
	} {
		c, _, err := Connector(minimal(`{"get":{"parameters":[{"$ref":"`+ref+`"}]}}`, ""),
			Options{FQN: "github://acme/tracker", Files: Below(beside)})
		why, fails := strings.CutPrefix(want, "!")
		switch {
		case fails && (err == nil || !strings.Contains(err.Error(), why) || hint.Of(err) == ""):
			t.Errorf("%s: %v, want %s", ref, err, why)
		case !fails && (err != nil || len(c.Operations[0].Inputs) != 1 || c.Operations[0].Inputs[0].Name != want):
			t.Errorf("%s: %+v, %v, want the input %s", ref, c, err, want)
		}
	}
	for _, ref := range []string{"/etc/passwd", "file:///etc/passwd", "https://127.0.0.1:1/x#/y", "other.yaml#/paths",
		"//h/x"} {
		_, _, err := Connector(minimal(`{"get":{"parameters":[{"$ref":"`+ref+`"}]}}`, ""),
			Options{FQN: "github://acme/tracker"})
		if err == nil || !strings.Contains(err.Error(), "read") && !strings.Contains(err.Error(), "nothing is fetched") {
			t.Errorf("%s without files: %v", ref, err)
		}
	}
}

// Each operation, parameter and body of a document is in the connector, left out with the reason, or missing.
func TestAConnectorIsComparedWithItsDocument(t *testing.T) {
	data := minimal(`{"parameters":[{"name":"X-T","in":"header"}],"get":{"parameters":[{"name":"q","in":"query"},
		{"name":"created","in":"query","style":"deepObject","schema":{"type":"object"}}]},
		"post":{"requestBody":{"content":{"application/x-www-form-urlencoded":{"schema":{"type":"object",
		"properties":{"email":{"type":"string"}}}}}}},"delete":{"requestBody":{"content":{"application/json":{"schema":{
		"type":"object","properties":{"a":{}}}}}}},"trace":{},"put":{"servers":[{"url":"http://api.t.example"}]},
		"patch":{"parameters":[{"$ref":"#/components/parameters/P"}]}}`,
		`,"components":{"parameters":{"P":{"name":"p","in":"query"}}}`)
	c, _ := made(t, data, Options{})
	files := must.Get(c.Files())(t)
	loaded := must.Get(spec.Load(files[spec.ManifestFile], files[spec.SpecFile]))(t)
	got := must.Get(Compare(data, loaded, Options{}))(t)
	want := "operations: 5 in the document, 4 in the connector\n" +
		"parameters: 7 in the document, 3 in the connector\nbodies: 2 in the document, 2 in the connector\n"
	text := strings.Join(got.Lines(), "\n") + "\n"
	if !strings.HasPrefix(text, want) || len(got.Missing) != 0 ||
		!strings.Contains(text, "left out: GET /a X-T: it is in a header, which a connector's call does not have\n") ||
		!strings.Contains(text, "left out: PUT /a: ") {
		t.Errorf("got\n%s", text)
	}
	// What is edited out of the connector is missing.
	less := strings.Replace(string(files[spec.SpecFile]), `"name": "q"`, `"name": "other"`, 1)
	less = strings.Replace(less, `"method": "PATCH"`, `"method": "SEARCH"`, 1)
	loaded = must.Get(spec.Load(files[spec.ManifestFile], []byte(less)))(t)
	got = must.Get(Compare(data, loaded, Options{}))(t)
	if text := strings.Join(got.Missing, ", "); text != "GET /a q, PATCH /a" && text != "PATCH /a, GET /a q" {
		t.Errorf("missing are %s", text)
	}
}

// A variable of a part of a segment, a slash that clients leave out, and the body of a DELETE are the document's.
func TestPathsAsDocumentsHaveThem(t *testing.T) {
	data := []byte(`{"openapi":"3.0.3","info":{"title":"T"},"servers":[{"url":"https://api.t.example/v1"}],"paths":{
		"/accounts/{Sid}.json":{"get":{"parameters":[{"name":"Sid","in":"path","schema":{"type":"string"}}]},"delete":{
			"requestBody":{"content":{"application/json":{"schema":{"type":"object","properties":{"reason":{}}}}}}}},
		"/accounts/{Sid}":{"get":{}},
		"/jobs/{name}:cancel":{"post":{}},
		"/compare/{base}...{head}":{"get":{}},
		"/apis/":{"get":{}},
		"/apis/{group}/":{"get":{"parameters":[{"name":"timeout","in":"query","schema":{"type":"integer"}}]}},
		"/both/{a}":{"get":{}},"/both/{b}/":{"get":{}},
		"/":{"get":{}}}}`)
	c, leftOut := made(t, data, Options{Query: []string{"timeout"}})
	var got []string
	for _, op := range c.Operations {
		line := op.Method + " " + op.Path
		if op.Slash {
			line += " or without the slash"
		}
		for _, in := range op.Inputs {
			line += " " + in.Name + ":" + cmp.Or(in.In, "path") + ":" + in.Type
		}
		got = append(got, line)
	}
	want := `GET /v1/accounts/{Sid}.json Sid:path:string timeout:query:
DELETE /v1/accounts/{Sid}.json Sid:path: timeout:query: reason:body:
GET /v1/accounts/{Sid} Sid:path: timeout:query:
POST /v1/jobs/{name}:cancel name:path: timeout:query:
GET /v1/apis/ or without the slash timeout:query:
GET /v1/apis/{group}/ or without the slash group:path: timeout:query:integer
GET /v1/both/{a} a:path: timeout:query:
GET /v1/both/{b}/ b:path: timeout:query:
GET /v1/ timeout:query:`
	if text := strings.Join(got, "\n"); text != want {
		t.Errorf("got\n%s", text)
	}
	if !strings.Contains(leftOut, "\noperations that cannot be declared: GET /compare/{base}...{head}: the variable ") {
		t.Errorf("left out are %s", leftOut)
	}
	files := must.Get(c.Files())(t)
	loaded := must.Get(spec.Load(files[spec.ManifestFile], files[spec.SpecFile]))(t)
	if got := must.Get(Compare(data, loaded, Options{}))(t); len(got.Missing) > 0 || got.Operations.Connector != 9 {
		t.Errorf("compared with its document: %v", got.Lines())
	}
	if _, _, err := Connector(data, Options{FQN: "github://acme/t", Query: []string{"a b"}}); err == nil {
		t.Error("a name with a space is taken")
	}
}
