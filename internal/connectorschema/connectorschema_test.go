package connectorschema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/spec"
)

func compiled(t testing.TB, name string) *jsonschema.Schema {
	t.Helper()
	text := must.Get(Document(name))(t)
	doc := must.Get(jsonschema.UnmarshalJSON(bytes.NewReader(text)))(t)
	c := jsonschema.NewCompiler()
	must.Do(t, c.AddResource(name, doc))
	return must.Get(c.Compile(name))(t)
}

func TestTheManualHasTheSchemas(t *testing.T) {
	for _, name := range []string{Connector, Manifest} {
		want := must.Get(Document(name))(t)
		file := must.Get(File(name))(t)
		got, err := os.ReadFile(filepath.Join("..", "..", "docs", "schema", file))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("docs/schema/%s is not the schema (%v): copy internal/connectorschema/%s there", file, err, file)
		}
	}
}

// Every connector of the catalogue and of the examples has files of the schemas.
func TestConnectorsAreOfTheSchemas(t *testing.T) {
	connector, manifest := compiled(t, Connector), compiled(t, Manifest)
	n := 0
	for _, pattern := range []string{"spec/catalog/*", "examples/connectors/*", "cmd/aileron/testdata/tracker"} {
		dirs := must.Get(filepath.Glob(filepath.Join("..", "..", pattern)))(t)
		for _, dir := range dirs {
			text, err := os.ReadFile(filepath.Join(dir, spec.SpecFile))
			if err != nil {
				continue // a file of Go
			}
			n++
			if err := connector.Validate(value(t, text)); err != nil {
				t.Errorf("%s: %v", dir, err)
			}
			text = must.Get(os.ReadFile(filepath.Join(dir, spec.ManifestFile)))(t)
			if err := manifest.Validate(tomlValue(t, text)); err != nil {
				t.Errorf("%s: %v", dir, err)
			}
		}
	}
	if n < 15 {
		t.Errorf("%d connectors found", n)
	}
}

func value(t testing.TB, text []byte) any {
	t.Helper()
	return must.Get(jsonschema.UnmarshalJSON(bytes.NewReader(text)))(t)
}

func tomlValue(t testing.TB, text []byte) any {
	t.Helper()
	var v map[string]any
	must.Do(t, toml.Unmarshal(text, &v))
	again := must.Get(json.Marshal(v))(t)
	return value(t, again)
}

// whole has every key of a spec.
const whole = `{"schema_version": "aileron.connector.v1",
 "connector": {"fqn": "github://acme/tracker", "version": "1.2.0-rc.1"},
 "placeholders": [{"env": "TRACKER_TOKEN", "value": "x"}], "headers": ["acme-*", "x-app"],
 "tools": [{"name": "tracker", "description": "d", "operations": [
  {"name": "a.b", "summary": "s", "description": "d", "method": "GET", "path": "/v1/{id}/{rest...}",
   "hosts": ["*.t.example", "b.t.example:8443"],
   "idempotency": "none", "approval": "none", "query": "declared", "upgrade": "websocket",
   "ranges": true, "packed": false,
   "escaped_slash": true,
   "wildcard_credential": true, "headers": ["x-b"], "credential": {"kind": "api_key", "scope": "s",
    "inject": {"in": "header", "name": "X-Key", "format": "Key {secret}", "username": "u"}},
   "inputs": [{"name": "id", "type": "string", "required": true, "description": "d",
     "in": "path", "escaped_slash": true, "values": ["*.git"]}],
   "audit": [{"name": "id", "source": "path.id", "redact": true, "description": "d"},
    {"name": "n", "source": "response.body.a.0"}]},
  {"name": "m", "method": "POST", "path": "/mcp", "hosts": ["t.example"],
   "mcp": {"tools": ["search_*", "get"], "methods": ["prompts/get"]}},
  {"name": "c", "method": "*", "path": "/", "hosts": ["t.example"], "credential": "api_key"},
  {"name": "f", "method": "POST", "path": "/f", "hosts": ["t.example"], "body": "form",
   "inputs": [{"name": "a[b][]", "type": "array", "explode": false},
    {"name": "o", "type": "object", "style": "deepObject", "schema": {"type": "object", "description": "d",
     "properties": {"x": {"type": ["string", "null"], "enum": ["a", null, 1, true]},
      "l": {"type": "array", "items": {}}}, "required": ["x"], "additionalProperties": false}}]},
  {"name": "r", "method": "PUT", "path": "/r", "hosts": ["t.example"], "body": "raw", "content_type": "image/png",
   "inputs": [{"name": "content", "type": "file"}]},
  {"name": "g", "method": "POST", "path": "/graphql", "hosts": ["t.example"],
   "graphql": {"type": "query", "fields": ["*", "_x*", "__type", "get"],
    "hashes": ["0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a"]}}]}]}`

const wholeManifest = `{"connector": {"name": "hub://a/b", "version": "1.0.0", "provenance_hash": ""},
 "capabilities": {"network": {"hosts": ["t.example:443"]}, "credential": {"kind": "basic", "scope": "s"},
  "runtime": {"imports": ["http/1"]}}, "provides": {"intents": ["read"]}}`

const loginManifest = `{"connector": {"name": "hub://a/b", "version": "1.0.0"},
 "capabilities": {"network": {"hosts": ["t.example"]}, "credential": {"kind": "oauth2", "oauth2": {
  "grant": "authorization_code", "authorize_url": "https://t.example/a", "token_url": "https://t.example/b",
  "revoke_url": "https://t.example/c", "client_id": "a", "client_secret": "bound-at-release", "scopes": ["r", "w"],
  "auth_params": {"access_type": "offline"}}}}}`

// accepts reports whether package spec accepts a file.
func accepts(t testing.TB, name string, text []byte) bool {
	t.Helper()
	if name == Connector {
		_, err := spec.Parse(text)
		return err == nil
	}
	var v map[string]any
	if json.Unmarshal(text, &v) != nil {
		return false
	}
	var b bytes.Buffer
	if err := toml.NewEncoder(&b).Encode(v); err != nil {
		return false // TOML has no such value
	}
	_, err := spec.ParseManifest(b.Bytes())
	return err == nil
}

// What is wrong with the structure of a file is found by its schema exactly if package spec finds it: each key removed,
// added, misspelled, and each value replaced by others.
func TestFaultsOfStructure(t *testing.T) {
	for text, name := range map[string]string{whole: Connector, wholeManifest: Manifest, loginManifest: Manifest} {
		schema := compiled(t, name)
		if !accepts(t, name, []byte(text)) || schema.Validate(value(t, []byte(text))) != nil {
			t.Fatalf("%s: the whole document is not valid: %v", name, schema.Validate(value(t, []byte(text))))
		}
		changes := 0
		change(text, func(at string, changed []byte) {
			changes++
			if name == Manifest && strings.HasSuffix(at, nothing) {
				return // TOML has no null
			}
			want, err := accepts(t, name, changed), schema.Validate(value(t, changed))
			between := func(place string) bool {
				login, isLogin := strings.CutPrefix(place, "login: ")
				return strings.HasPrefix(at, login) && (!isLogin || text == loginManifest)
			}
			if want && err != nil || !want && err == nil && !slices.ContainsFunc(inexpressible, between) {
				t.Errorf("%s: spec accepts it: %v, and the schema: %v\n%s", at, want, err, changed)
			}
		})
		if changes < 100 {
			t.Errorf("%s: %d changes", name, changes)
		}
	}
}

// inexpressible are the places of faults that a schema cannot express: they depend on another
// value of the file, or on a list in package spec.
var inexpressible = []string{
	`headers[0] = "GIT_TOKEN"`, `headers[1] = "GIT_TOKEN"`, // reserved fields
	`tools[0].operations[0].headers[0] = "GIT_TOKEN"`,
	`tools[0].operations[0].credential = "bearer"`, // a second kind
	`tools[0].operations[0].credential.kind = "bearer"`,
	`tools[0].operations[2].credential = "bearer"`,
	`tools[0].operations[1].method`, // which mcp needs
	`tools[0].operations[1].path`,
	`tools[0].operations[3].body`, // which the style of an input needs
	`tools[0].operations[3].inputs[1].style`,
	`tools[0].operations[3].method`, // of a request that has a body
	`tools[0].operations[3].path`,   // without which it allows what graphql judges
	`tools[0].operations[4].body`,   // which has one input, a file
	`tools[0].operations[4].inputs`,
	`tools[0].operations[4].method`,
	`tools[0].operations[5].method`, // which graphql needs
	`tools[0].operations[5].path`,
	`tools[0].operations[0].wildcard_credential`, // what a host with *. needs
	`tools[0].operations[0].path`,                // without the variables that others name
	`tools[0].operations[0].inputs[0].name`,      // an input of the path that is no variable of it
	`tools[0].operations[0].audit[0].source = "path.x"`,
	`tools[0].operations[0].audit[1].source = "path.x"`,
	`login: capabilities.network`,                         // the host of the endpoints
	`login: capabilities.credential.oauth2.grant`,         // which keys it needs
	`login: capabilities.credential.oauth2.authorize_url`, // which the grant needs
	`login: capabilities.credential.oauth2.client_id`,     // which a secret needs
}

// nothing ends the place of a value that is replaced by null.
const nothing = ` = "<nil>"`

// others are what each value is replaced by.
var others = []any{nil, true, 1, 1.5, "", "x", "\u0000", "a\nb", "é", "..", "/x", "GET", "get", "none", "declared",
	[]any{}, []any{"x"}, []any{1}, map[string]any{}, map[string]any{"x": 1}, "t.example", "t.example:443",
	"http://t.example", "t.example:0", "path.x", "response.body.a", "response.body.", "response.body.@this",
	"bearer", "{secret}", "1.2.3",
	"v1.2.3", "01.2.3",
	"GIT_TOKEN", "github://a/b", "GITHUB://a/b", "request_id", strings.Repeat("x", 101), strings.Repeat("x", 5000)}

// change calls try with every document that differs from text at one place.
func change(text string, try func(at string, changed []byte)) {
	var root any
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	if dec.Decode(&root) != nil {
		return
	}
	emit := func(at string) {
		if changed, err := json.Marshal(root); err == nil {
			try(at, changed)
		}
	}
	var walk func(v any, at string, set func(any))
	walk = func(v any, at string, set func(any)) {
		for _, other := range others {
			set(other)
			emit(fmt.Sprintf("%s = %.20q", at, fmt.Sprint(other)))
		}
		set(v)
		switch v := v.(type) {
		case map[string]any:
			v["surplus"] = "x"
			emit(at + ".surplus added")
			delete(v, "surplus")
			for key, inner := range v {
				delete(v, key)
				emit(at + "." + key + " removed")
				v[strings.ToUpper(key)] = inner
				emit(at + "." + key + " in upper case")
				delete(v, strings.ToUpper(key))
				v[key] = inner
				walk(inner, strings.TrimPrefix(at+"."+key, "."), func(x any) { v[key] = x })
			}
		case []any:
			for i, inner := range v {
				walk(inner, fmt.Sprintf("%s[%d]", at, i), func(x any) { v[i] = x })
			}
		}
	}
	walk(root, "", func(x any) { root = x })
}
