package graphql

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/scaffold"
)

var update = flag.Bool("update", false, "write testdata/*.golden anew")

// The excerpt has what schemas of large public APIs have. The golden file is the connector and what was left out of it.
func TestTheExcerpt(t *testing.T) {
	data := must.Get(os.ReadFile("testdata/tracker.graphql"))(t)
	c, leftOut, err := Connector(data, Options{FQN: "github://acme/tracker", Host: "api.tracker.example"})
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

// made returns the connector of a schema, whose files package spec accepts.
func made(t *testing.T, schema string, opts Options) (c *scaffold.Connector, leftOut string) {
	t.Helper()
	opts.FQN, opts.Host = "github://acme/tracker", "api.t.example"
	c, lines, err := Connector([]byte(schema), opts)
	if err != nil {
		t.Fatalf("%v; left out:\n%s", err, strings.Join(lines, "\n"))
	}
	must.Get(c.Files())(t)
	return c, strings.Join(lines, "\n")
}

// grants returns what a connector allows, a line for each operation. One that asks has a question mark.
func grants(c *scaffold.Connector) string {
	var lines []string
	for _, op := range c.Operations {
		line := op.Name + " " + op.GraphQL.Type + ":" + strings.Join(op.GraphQL.Fields, ",")
		if op.Approval == "required" {
			line += "?"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// The JSON of an introspection query, in each form that tools write, is the same connector as the schema in SDL.
func TestBothFormsAreOneConnector(t *testing.T) {
	sdl := `type Query { a: Int "A b." b: Int } type M { createX: Int } schema { query: Query mutation: M }`
	const introspected = `{"__schema":{"queryType":{"name":"Query"},"mutationType":{"name":"M"},"subscriptionType":null,
"types":[{"kind":"SCALAR","name":"Int","fields":null},
{"kind":"OBJECT","name":"Query","fields":[{"name":"a","args":[{"name":"x"}],"description":null},
 {"name":"b","description":"A b."}]},
{"kind":"OBJECT","name":"M","fields":[{"name":"createX","isDeprecated":false}]}],"directives":[]}}`
	want := "query query:a,b,__schema,__type\nmutation.createX mutation:createX?"
	for _, text := range []string{sdl, introspected, `{"data":` + introspected + `}`, "\ufeff \n" + introspected,
		`{"extensions":{},"data":` + introspected + `,"errors":[]}`, "\ufeff# x\n" + sdl} {
		if !IsSchema([]byte(text)) {
			t.Errorf("%.60q is no schema", text)
		}
		if c, _ := made(t, text, Options{}); grants(c) != want {
			t.Errorf("%.60q: %s", text, grants(c))
		}
	}
}

func TestWhatIsASchema(t *testing.T) {
	for text, want := range map[string]bool{
		"type Query{a:Int}": true, "  # c\n\"\"\"d \\\"\"\" e\"\"\" \"f\" extend type Query @a {b:Int}": true,
		"schema{query:Q}": true, "directive @a on FIELD": true, "query{a}": true, "type": false, "{": false, "": false,
		"\"\"\"open": false, "\"open": false, "type: object": false, "openapi: 3.0.0": false, "schema:\n a: b": false,
		"# type Query\nopenapi: 3.0.0": false, `{"openapi":"3.0.0","data":{}}`: false, `{"data":{"__schema":{}}}`: true,
		`{"x":[1,{}],"__schema":{}}`: true, `{"paths":{}}`: false, `{"errors":[]}`: true, `{"x":`: false, `[]`: false,
		`{"x":1}`: false,
	} {
		if got := IsSchema([]byte(text)); got != want {
			t.Errorf("IsSchema(%q) = %v, want %v", text, got, want)
		}
	}
}

func TestFieldsAreSelected(t *testing.T) {
	const schema = "type Query{a:Int} type Mutation{a:Int createIssue:Int createPull:Int} type Subscription{a:Int}"
	for _, c := range []struct {
		only []string
		want string
	}{
		{[]string{"a"}, "query query:a\nmutation.a mutation:a?\nsubscription subscription:a"},
		{[]string{"query *"}, "query query:a,__schema,__type"},
		{[]string{"mutation create*", "query a"},
			"query query:a\nmutation.createIssue mutation:createIssue?\nmutation.createPull mutation:createPull?"},
	} {
		if got, _ := made(t, schema, Options{Only: c.only}); grants(got) != c.want {
			t.Errorf("%q: %s", c.only, grants(got))
		}
	}
}

// Of many mutations, those that do the same are one operation. Each of them asks.
func TestManyMutationsAreGroupedByWhatTheyDo(t *testing.T) {
	var b strings.Builder
	b.WriteString("type Query{a:Int} type Mutation{issueRemoveLabel:Int delete_ref:Int URLDelete:Int mergeBranch:Int " +
		"charge:Int refundPullRequest:Int issueUpdate:Int updateX:Int removeX:Int ")
	for i := range 300 {
		fmt.Fprintf(&b, "createX%d:Int ", i)
	}
	c, _ := made(t, b.String()+"}", Options{Only: []string{"mutation *"}})
	var names []string
	for _, op := range c.Operations {
		names = append(names, fmt.Sprintf("%s %d %s", op.Name, len(op.GraphQL.Fields), op.Approval))
	}
	if got := strings.Join(names, ", "); got != "mutation.create 250 required, mutation.create-2 50 required, "+
		"mutation.delete 4 required, mutation.mergeBranch 1 required, mutation.other 2 required, "+
		"mutation.update 2 required" {
		t.Errorf("the operations are %s", got)
	}
	if op := c.Operations[2]; op.Summary != "Mutations that delete: issueRemoveLabel, delete_ref, URLDelete and 1 more" {
		t.Errorf("the summary is %q", op.Summary)
	}
}

func TestTheEndpointAndTheCredentialAreThoseOfTheOptions(t *testing.T) {
	const schema = "type Query{a:Int}"
	kinds := map[spec.Kind]string{"": "bearer", NoCredential: "", "api_key": "api_key", "oauth2": "oauth2"}
	for kind, want := range kinds {
		c, leftOut := made(t, schema, Options{Credential: kind, Path: "/admin/api/graphql.json"})
		got := ""
		if op := c.Operations[0]; op.Credential != nil {
			got = string(op.Credential.Kind)
		}
		if got != want || c.Operations[0].Path != "/admin/api/graphql.json" || (c.Credential == nil) != (want == "") {
			t.Errorf("%q: the credential is %q, of %v", kind, got, c.Operations[0])
		}
		if strings.Contains(leftOut, "bearer stands in") != (kind == "") {
			t.Errorf("%q: %s", kind, leftOut)
		}
	}
}

func TestSchemasOfWhichNoConnectorIsMade(t *testing.T) {
	const query = "type Query{a:Int}"
	many := "type Query{" + strings.Repeat("a:Int ", maxTokens/3+1) + "}"
	for _, c := range []struct{ schema, want string }{
		{"", "at a root"},
		{"type Query{a:Int", "no schema definition language"},
		{"type Query{a(:Int}", "no schema definition language"},
		{"type Query{é:Int}", "no schema definition language"},
		{"type Query{a:Int}\x00", "no schema definition language"},
		{"query{a}", "no schema definition language"},
		{query + " type X{a:" + strings.Repeat("[", 100000), "no schema definition language"},
		{many, "no schema definition language: .*token limit"},
		{query + query, `two types have the name "Query"`},
		{query + " type X{a:Int} input X{a:Int}", `two types have the name "X"`},
		{query + " schema{query:Query} schema{query:Query}", "defines the schema twice"},
		{query + " schema{query:Query query:Query}", "two types for a query"},
		{query + " schema{query:Query mutation:Query}", "the root of two types of operations"},
		{query + " schema{query:Query mutation:M}", `no type "M", which is the root of a mutation`},
		{"input Query{a:Int}", "not an object type"},
		{"extend union Query = A", "not an object type"},
		{"type X{a:Int}", "no field at a root"},
		{"type Query{__a:Int}", ""},
		{"\xff", "not UTF-8"},
		{strings.Repeat(" ", maxSize+1), "larger than"},
		{"{", "no JSON"}, {`{"data":null}`, `no "__schema"`}, {`{"data":{}}`, `no "__schema"`},
		{`{"errors":[{"message":"secret"}]}`, "errors of the server"},
		{`{"__schema":{"types":3}}`, "its types: it is no list"}, {`{"__schema":{}} {}`, "no JSON"},
		{`{"__schema":{}}`, "no field at a root"},
		{`{"__schema":` + strings.Repeat(`{"a":`, 20000), "no JSON"},
		{"{" + strings.Repeat(`{`, maxObjects), "more than 1048576 objects"},
		{`{"__schema":{"types":[0` + strings.Repeat(",0", maxValues+1) + `]}}`, "or 4194304 values"},
		{`{"__schema":{"types":[0,{"name":"Q"}]}}`, "its types: json: cannot unmarshal number"},
		{`{"__schema":{"types":[null]}}`, "its types: null is no object"},
		{`{"__schema":{"queryType":{"name":"Q"},"types":[{"kind":"OBJECT","name":"Q","fields":[{"name":"a"},0]}]}}`,
			"are none"},
		{query + " type X{a(b:X=[" + strings.Repeat("1 ", maxTokens) + "]):Int}", "token limit"},
		{`{"__schema":{"queryType":{"name":"Q"},"types":[]}}`, `no type "Q"`},
		{`{"__schema":{"queryType":{"name":"Q"},"types":[{"kind":"INPUT_OBJECT","name":"Q"}]}}`, "not an object type"},
		{`{"__schema":{"queryType":{"name":"Q"},"types":[{"kind":"OBJECT","name":"Q","fields":3}]}}`, "are none"},
		{`{"__schema":{"queryType":{"name":"Q"},"types":[{"kind":"OBJECT","name":"Q"},{"name":"Q"}]}}`, "two types"},
		{`{"__schema":{"queryType":{"name":"Q"},"mutationType":{"name":"Q"},"types":[{"kind":"OBJECT","name":"Q"}]}}`,
			"the root of two types"},
	} {
		got, _, err := Connector([]byte(c.schema), Options{FQN: "github://acme/t", Host: "api.t.example"})
		if c.want == "" {
			if err != nil || grants(got) != "query query:__schema,__type" {
				t.Errorf("%.80q: %v, %v", c.schema, got, err)
			}
			continue
		}
		want, more, _ := strings.Cut(c.want, ": .*")
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), more) ||
			hint.Of(err) == "" || len(err.Error()) > 600 {
			t.Errorf("%.80q: %v, want %q", c.schema, err, c.want)
		}
	}
}

func TestOptionsThatNoConnectorCanHave(t *testing.T) {
	for want, opts := range map[string]Options{
		"has no address": {}, "cannot be declared": {Host: "localhost"},
		"cannot be declared: ": {Host: "a.example", Path: "x"},
		"no field at a root":   {Host: "a.example", Only: []string{"none"}},
	} {
		opts.FQN = "github://acme/t"
		_, _, err := Connector([]byte("type Query{a:Int}"), opts)
		if err == nil || !strings.Contains(err.Error(), want) || hint.Of(err) == "" {
			t.Errorf("%v: %v, want %q", opts, err, want)
		}
	}
	var b strings.Builder
	for i := range maxFields {
		fmt.Fprintf(&b, "a%d:Int ", i)
	}
	_, _, err := Connector([]byte("type Query{"+b.String()+"}"), Options{FQN: "github://acme/t", Host: "a.example"})
	if err == nil || !strings.Contains(err.Error(), "5002 fields at its roots") ||
		!strings.Contains(hint.Of(err), "--only") {
		t.Errorf("a schema with too many fields: %v", err)
	}
}

// A document of many small values takes no more memory than its text does a few times.
func TestValuesThatAreNotReadTakeNoMemory(t *testing.T) {
	many := "[0" + strings.Repeat(",0", 1<<20) + "]"
	for _, text := range []string{`{"__schema":{"types":` + many + `}}`, `{"errors":` + many + `}`,
		`{"__schema":{"queryType":{"name":"Q"},"types":[{"kind":"OBJECT","name":"Q","fields":` + many + `}]}}`} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := read([]byte(text))
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; err == nil || took > uint64(8*len(text)) {
			t.Errorf("%.60s: %v, of %d bytes, with %d", text, err, len(text), took)
		}
	}
}

func TestQueriesWhoseNamesDeleteAsk(t *testing.T) {
	for name, want := range map[string]bool{"deleteUser": true, "deleteall": true, "DELETEuser": true, "_delete": true,
		"_DELETE_x": true, "purgeAll": true, "clear": true, "deletedUsers": false, "removedItem": false, "dropdown": false,
		"clearanceLevel": false, "undelete": false, "users": false, "_": false} {
		c, _ := made(t, "type Query{"+name+":Int}", Options{Only: []string{"query " + name}})
		if asks := c.Operations[0].Approval == "required"; asks != want {
			t.Errorf("%s: it asks: %v, want %v", name, asks, want)
		}
	}
}

// What a schema has for people is shown to people, so nothing in it controls a terminal or ends a line.
func TestTextsOfASchemaAreCleaned(t *testing.T) {
	text := must.Get(json.Marshal("a\x1b]0;x\a\u202e\n b " + strings.Repeat("ü", 300)))(t)
	c, _ := made(t, `{"__schema":{"queryType":null,"mutationType":{"name":"M"},"types":[
{"kind":"OBJECT","name":"M","fields":[{"name":"createA","description":`+string(text)+`,"isDeprecated":true},
{"name":"x\u001b","description":""},{"name":"createA"},{"name":"createa"}]}]}}`, Options{})
	if s := c.Operations[0].Summary; !strings.HasPrefix(s, "Deprecated: a]0;x b üü") || len(s) > maxAbout {
		t.Errorf("the summary is %q", s)
	}
	if got := grants(c); got != "mutation.createA mutation:createA?\nmutation.createa-2 mutation:createa?" {
		t.Errorf("it grants %s", got)
	}
}

func TestWordsOfNames(t *testing.T) {
	for name, want := range map[string]string{
		"createLinkedBranch": "create linked branch",
		"create_linked":      "create linked", "URLDelete": "url delete", "getURL": "get url",
		"__a__B": "a b", "a": "a", "issueDelete": "issue delete", "_": "",
	} {
		if got := strings.Join(words(name), " "); got != want {
			t.Errorf("words(%q) = %q, want %q", name, got, want)
		}
	}
}

// FuzzConnector holds every schema to: an error with a hint, or files that package spec accepts and mutations that ask.
func FuzzConnector(f *testing.F) {
	f.Add(must.Get(os.ReadFile("testdata/tracker.graphql"))(f))
	f.Add([]byte(`{"data":{"__schema":{"mutationType":{"name":"M"},` +
		`"types":[{"kind":"OBJECT","name":"M","fields":[{"name":"a"}]}]}}}`))
	f.Add([]byte("extend type Query{deleteA:Int} extend schema{mutation:M} type M{a:Int}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		IsSchema(data)
		c, leftOut, err := Connector(data, Options{FQN: "github://acme/t", Host: "a.example"})
		if err != nil {
			var hinted interface{ Hint() string }
			if hint.Of(err) == "" && !errors.As(err, &hinted) {
				t.Errorf("no hint: %v", err)
			}
			return
		}
		must.Get(c.Files())(t)
		for _, op := range c.Operations {
			asks := op.GraphQL.Type == "mutation" || slices.ContainsFunc(op.GraphQL.Fields, deletes)
			if asks != (op.Approval == "required") {
				t.Errorf("%s: its approval is %q", op.Name, op.Approval)
			}
		}
		for _, line := range leftOut {
			if strings.ContainsAny(line, "\n\x1b") {
				t.Errorf("%q", line)
			}
		}
	})
}
