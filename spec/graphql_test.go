package spec_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/spec"
)

func TestAnOperationOfGraphQLNamesATypeAndFields(t *testing.T) {
	const (
		post  = `"method":"POST","path":"/graphql",`
		get   = `"method":"GET","path":"/graphql",`
		reads = `"graphql":{"type":"query","fields":["*"]}`
	)
	hash := strings.Repeat("0a", 32)
	for _, c := range []struct {
		operations []string
		want       string // "": it is valid
	}{
		{[]string{post + `"graphql":{"type":"query","fields":["*","__type","viewer","repo*"]}`}, ""},
		{[]string{post + `"graphql":{"type":"subscription","hashes":["` + hash + `"]}`}, ""},
		{[]string{get + reads + `,"inputs":[{"name":"query"},{"name":"operationName"}]`}, ""},
		{[]string{post + reads + `,"inputs":[{"name":"query"},{"name":"variables","type":"object"}]`}, ""},
		{[]string{post + reads, post + `"graphql":{"type":"mutation","fields":["a"]},"approval":"required"`}, ""},
		{[]string{post + reads, get + reads, `"method":"GET","path":"/{a}/{b}"`, `"method":"PUT","path":"/graphql"`}, ""},
		{[]string{post + reads + `,"inputs":[{"name":"operationName"}],"approval":{"when":{"body.operationName":["M*"]}}`},
			"writes body.operationName as it likes"},
		{[]string{get + reads + `,"inputs":[{"name":"operationName"}],"approval":{"when":{"query.operationName":["M"]}}`},
			"writes query.operationName as it likes"},
		{[]string{`"method":"POST","path":"/{org}/graphql",` + reads + `,"approval":{"when":{"path.org":["acme"]}}`}, ""},
		{[]string{post + `"graphql":{"fields":["a"]}`}, "missing"},
		{[]string{post + `"graphql":{"type":"Query","fields":["a"]}`}, `"Query" is not "query" or "mutation"`},
		{[]string{post + `"graphql":{"type":"query"}`}, "it allows nothing"},
		{[]string{post + `"graphql":{"type":"query","field":["x"]}`}, "unknown key"},
		{[]string{post + `"graphql":{"type":"query","fields":["a*b"]}`}, "is neither the name of a field"},
		{[]string{post + `"graphql":{"type":"query","fields":["__*"]}`}, "is neither the name of a field"},
		{[]string{post + `"graphql":{"type":"query","fields":["1a"]}`}, "is neither the name of a field"},
		{[]string{post + `"graphql":{"type":"query","fields":["a-b"]}`}, "is neither the name of a field"},
		{[]string{post + `"graphql":{"type":"query","fields":["a","a"]}`}, "appears twice"},
		{[]string{post + `"graphql":{"type":"query","hashes":["` + strings.ToUpper(hash) + `"]}`}, "64 hexadecimal digits"},
		{[]string{post + `"mcp":{"tools":["a"]},` + reads}, "an operation with mcp"},
		{[]string{`"method":"PUT","path":"/graphql",` + reads}, "it needs the method POST or GET"},
		{[]string{get + `"graphql":{"type":"mutation","fields":["a"]}`}, "a GET changes nothing"},
		{[]string{`"method":"POST",` + reads}, "it needs a path"},
		{[]string{post + reads + `,"query":"any"`}, `it is "any", and graphql needs "declared"`},
		{[]string{post + reads + `,"upgrade":"websocket"`}, "what is sent after an upgrade is not judged"},
		{[]string{post + reads + `,"inputs":[{"name":"q","in":"query"}]`}, "a server may look for the document"},
		{[]string{post + reads, `"method":"POST","path":"/GraphQL/"`}, "it allows every body of the requests of opa"},
		{[]string{post + reads, `"method":"GET","path":"/{path...}"`}, "it allows every body of the requests of opa"},
		{[]string{post + reads, `"path":"/graphql"`}, "it allows every body of the requests of opa"},
	} {
		got, err := spec.Parse(withOperations(slices.Clone(c.operations)...))
		switch {
		case c.want == "" && err != nil, c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %q", c.operations, err, c.want)
		case c.want == "" && (!got.Tools[0].Operations[0].QueryDeclaredOnly || !got.Tools[0].Operations[0].JudgesBody()):
			t.Errorf("%s: it has any query, or judges no body", c.operations)
		}
	}
}
