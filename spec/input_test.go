package spec

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

func TestAnInputHasOnePlace(t *testing.T) {
	for fields, want := range map[string][]string{
		`"method": "GET", "inputs": [{"name": "id"}, {"name": "q"}]`:                               {"path", "query"},
		`"method": "HEAD", "inputs": [{"name": "id", "in": "path"}, {"name": "q", "in": "query"}]`: {"path", "query"},
		`"method": "DELETE", "inputs": [{"name": "q"}, {"name": "id"}]`:                            {"query", "path"},
		`"method": "POST", "inputs": [{"name": "id"}, {"name": "title"}, {"name": "v", "in": "query"}]`: {
			"path", "body", "query"},
		`"method": "PATCH", "inputs": [{"name": "title", "in": "body"}]`: {"body"},
		`"method": "*", "inputs": [{"name": "title"}]`:                   {"body"},
		`"inputs": [{"name": "title"}]`:                                  {"body"},
	} {
		c, err := Parse([]byte(specWith(fields + `, "path": "/issues/{id}", "hosts": ["a.example"]`)))
		if err != nil {
			t.Errorf("%s: %v", fields, err)
			continue
		}
		var got []string
		for _, in := range c.Tools[0].Operations[0].Inputs {
			got = append(got, in.In)
		}
		if !slices.Equal(got, want) {
			t.Errorf("the places of %s are %q, want %q", fields, got, want)
		}
	}
}

func TestPlacesThatAnInputMayNotHave(t *testing.T) {
	const rest = `"path": "/issues/{id}/{path...}", "hosts": ["a.example"], `
	for fields, want := range map[string][2]string{
		`"method": "GET", "inputs": [{"name": "q"}, {"name": "id", "in": "query"}]`: {"[1].in",
			`"id" is a variable of the path`},
		`"method": "POST", "inputs": [{"name": "id", "in": "body"}]`: {"[0].in",
			`"id" is a variable of the path`},
		`"method": "GET", "inputs": [{"name": "path", "in": "query"}]`: {"[0].in",
			`"path" is a variable of the path`},
		`"method": "GET", "inputs": [{"name": "q", "in": "path"}]`: {"[0].in",
			"the path has no variable {q}"},
		`"method": "GET", "inputs": [{"name": "q", "in": "body"}]`:                  {"[0].in", "a GET request has no body"},
		`"method": "HEAD", "inputs": [{"name": "q", "in": "body"}]`:                 {"[0].in", "a HEAD request has no body"},
		`"method": "POST", "inputs": [{"name": "q"}, {"name": "q", "in": "query"}]`: {"[1].name", `"q" appears twice`},
		`"method": "POST", "inputs": [{"name": "q", "in": "header"}]`: {"[0].in",
			`"header" is not "path" or "query" or "body"`},
		`"method": "POST", "inputs": [{"name": "q", "in": "Query"}]`: {"[0].in", `"Query" is not`},
		`"method": "POST", "inputs": [{"name": "q", "in": 1}]`:       {"[0].in", "it is not a string"},
		`"method": "POST", "inputs": [{"name": "q", "In": "query"}]`: {"[0].In",
			`use "in", in exactly that case`},
	} {
		wantOnly(t, rest+fields, op0+".inputs"+want[0], want[1])
	}
}

// A server that takes a query name for a path variable or a body field acts
// on another object than the one that was matched and recorded.
func TestOnlyInputsOfTheQueryPassInIt(t *testing.T) {
	c := must.Get(Parse([]byte(specWith(`"method": "POST", "path": "/issues/{id}", "hosts": ["a.example"],
		"credential": "bearer", "inputs": [{"name": "id"}, {"name": "title"}, {"name": "notify", "in": "query"}]`))))(t)
	ix := index(t, c)
	for query, why := range map[string]string{
		"notify=1": "", "": "", "id=4": "it is an input of the path", "title=x": "it is an input of the body",
		"notify=1&id=4": "it is an input of the path",
		"%69d=4":        "it is an input of the path", "ID=4": "does not declare the query name",
		"id[]=4": "does not declare the query name",
	} {
		_, no := ix.Match(target("POST a.example/issues/7?" + query))
		switch {
		case (no == nil) != (why == ""):
			t.Errorf("?%s: %v, want %q", query, no, why)
		case no != nil && (no.Reason != ReasonQuery || !strings.Contains(no.Error(), why) || !slices.Equal(no.Granted,
			[]string{"query:notify"})):
			t.Errorf("?%s: %s %v %q, want %q and only notify granted", query, no.Reason, no, no.Granted, why)
		}
	}
}

// An input that declares its values is a limit of the operation: of one path,
// fetches and pushes are two operations, and a request is the one that its
// query names.
func TestOnlyDeclaredValuesMatch(t *testing.T) {
	c := must.Get(Parse([]byte(strings.Replace(specWith(`"method": "GET", "path": "/{repo}/info/refs",
		"hosts": ["a.example"], "inputs": [{"name": "repo", "values": ["*.git"]},
		{"name": "service", "in": "query", "values": ["git-upload-pack"]}]`),
		`"operations": [`, `"operations": [{"name": "push", "method": "GET", "path": "/{repo}/info/refs",
		"hosts": ["a.example"], "inputs": [{"name": "repo", "values": ["own.git"]},
		{"name": "service", "values": ["git-receive-pack"]}]}, `, 1))))(t)
	ix := index(t, c)
	for request, want := range map[string]string{
		"/own.git/info/refs?service=git-receive-pack":                         "push",
		"/own.git/info/refs?service=git-upload-pack":                          "issues.get",
		"/any.git/info/refs?service=git-upload-pack":                          "issues.get",
		"/any.git/info/refs":                                                  "issues.get", // a query name may be absent
		"/any.git/info/refs?service=git-receive-pack":                         "",
		"/any.git/info/refs?service=git-upload-pack&service=git-receive-pack": "",
		"/any.git/info/refs?service=git-upload%2dpack":                        "", // one spelling
		"/any.git/info/refs?servic%65=git-receive-pack":                       "",
		"/any.git/info/refs?service=git-upload-pack2":                         "",
		"/any.git/info/refs?service":                                          "",
		"/any.git/info/refs?other=1":                                          "",
		"/any/info/refs?service=git-upload-pack":                              "",
		"/.git/info/refs?service=git-upload-pack":                             "", // * is at least one character
		"/any.git.x/info/refs?service=git-upload-pack":                        "",
	} {
		m, no := ix.Match(target("GET a.example" + request))
		switch {
		case no == nil && m.Operation.Name != want:
			t.Errorf("%s is %s, want %q", request, m.Operation.Name, want)
		case no != nil && want != "":
			t.Errorf("%s: %v, want %s", request, no, want)
		}
	}
	_, no := ix.Match(target("GET a.example/own.git/info/refs?service=x"))
	if no == nil || no.Reason != ReasonQuery || !strings.Contains(no.Error(), `does not allow the value "x" of service`) {
		t.Errorf("the denial is %v", no)
	}
	_, no = ix.Match(target("GET a.example/any/info/refs?service=git-upload-pack"))
	if no == nil || no.Reason != ReasonOperation || !strings.Contains(no.Error(), "allowed are own.git") {
		t.Errorf("the denial is %v", no)
	}
}

func TestValuesThatCannotBeDeclared(t *testing.T) {
	const path = `"method": "POST", "path": "/a/{id}/{rest...}", "hosts": ["a.example"], "inputs": `
	for inputs, want := range map[string][2]string{
		`[{"name": "b", "values": ["x"]}]`:                    {".inputs[0].values", "bodies are not read"},
		`[{"name": "rest", "values": ["x"]}]`:                 {".inputs[0].values", "takes the rest"},
		`[{"name": "id", "values": []}]`:                      {".inputs[0].values", "it has no entry"},
		`[{"name": "id", "values": [1]}]`:                     {".inputs[0].values[0]", "it is not a string"},
		`[{"name": "id", "values": ["x", "x"]}]`:              {".inputs[0].values[1]", "appears twice"},
		`[{"name": "id", "values": ["*"]}]`:                   {".inputs[0].values[0]", "is not plain text"},
		`[{"name": "id", "values": ["a*b"]}]`:                 {".inputs[0].values[0]", "is not plain text"},
		`[{"name": "id", "values": ["a/b"]}]`:                 {".inputs[0].values[0]", "is not plain text"},
		`[{"name": "id", "values": ["%2e"]}]`:                 {".inputs[0].values[0]", "is not plain text"},
		`[{"name": "q", "in": "query", "values": ["*x"]}]`:    {".inputs[0].values[0]", "is not plain text"},
		`[{"name": "q", "in": "query", "values": ["a&b=c"]}]`: {".inputs[0].values[0]", "is not plain text"},
		`[{"name": "q", "in": "query", "values": ["x"]}], "query": "any"`: {".query",
			"an input declares its values"},
	} {
		wantOnly(t, path+inputs, op0+want[0], want[1])
	}
}

// A token that a service takes as a bearer and as the password of Basic
// credentials is one credential of one connector.
func TestAUsernameMakesBasicCredentials(t *testing.T) {
	const rest = `"method": "GET", "path": "/x/{id}", "hosts": ["a.example"], "credential": `
	c := must.Get(Parse([]byte(specWith(rest + `{"kind": "bearer", "inject": {"username": "Aladdin"}}`))))(t)
	in := c.Tools[0].Operations[0].Injection
	if in.Name != "Authorization" || in.Format != "Basic {secret}" ||
		in.Compose("", "open sesame") != "QWxhZGRpbjpvcGVuIHNlc2FtZQ==" { // the example of RFC 7617 section 2
		t.Errorf("the injection is %+v", in)
	}
	if names := c.Usernames(); len(names) != 1 || names[0] != "Aladdin" {
		t.Errorf("Usernames() = %q", names)
	}
	for credential, why := range map[string]string{
		`{"kind": "basic", "inject": {"username": "u"}}`:                              "is that of its binding",
		`{"kind": "bearer", "inject": {"username": "a:b"}}`:                           "is not letters",
		`{"kind": "bearer", "inject": {"in": "query", "name": "k", "username": "u"}}`: "stands in a header",
	} {
		wantOnly(t, rest+credential, op0+".credential.inject", why)
	}
}

// Arguments that inputs have are accepted, and each mistake is the one that is named.
func TestArgumentsAreCheckedAgainstInputs(t *testing.T) {
	inputs := []Input{{Name: "title", Type: "string", Required: true}, {Name: "count", Type: "integer"}}
	for _, c := range []struct {
		args map[string]any
		want string // "": they are accepted
	}{
		{map[string]any{"title": "x", "count": json.Number("1")}, ""},
		{map[string]any{"title": "x"}, ""},
		{map[string]any{"title": "x", "zone": "x"}, "args.zone: there is no such input"},
		{map[string]any{"count": json.Number("1")}, "args.title: it is missing"},
		{map[string]any{"title": nil}, "args.title: it is null"},
	} {
		err := CheckInputs(inputs, c.args)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("CheckInputs(%v) = %v, want %q", c.args, err, c.want)
		}
	}
}
