package spec

import (
	"slices"
	"strings"
	"testing"
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
		`"method": "GET", "inputs": [{"name": "q", "in": "body"}]`:  {"[0].in", "a GET request has no body"},
		`"method": "HEAD", "inputs": [{"name": "q", "in": "body"}]`: {"[0].in", "a HEAD request has no body"},
		`"method": "DELETE", "inputs": [{"name": "q", "in": "body"}]`: {"[0].in",
			"a DELETE request has no body"},
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
	c, err := Parse([]byte(specWith(`"method": "POST", "path": "/issues/{id}", "hosts": ["a.example"],
		"credential": "bearer", "inputs": [{"name": "id"}, {"name": "title"}, {"name": "notify", "in": "query"}]`)))
	if err != nil {
		t.Fatal(err)
	}
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
