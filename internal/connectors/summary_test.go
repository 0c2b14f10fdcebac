package connectors_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/connectors"
	"github.com/ALRubinger/aileron/spec"
)

// What writes has none of the queries of GraphQL, except for stored documents. What asks first is named.
func TestTheSummaryTellsQueriesOfGraphQLFromChanges(t *testing.T) {
	const at = `"method":"POST","path":"/graphql","hosts":["api.example.org"],`
	c := must.Get(spec.Parse([]byte(`{"schema_version":"aileron.connector.v1",
		"connector":{"fqn":"github://acme/m","version":"1.0.0"},"tools":[{"name":"m","operations":[
		{"name":"read",` + at + `"graphql":{"type":"query","fields":["*"]}},
		{"name":"stored",` + at + `"graphql":{"type":"query","hashes":["` + strings.Repeat("ab", 32) + `"]}},
		{"name":"merge",` + at + `"graphql":{"type":"mutation","fields":["merge"]},"approval":"required"},
		{"name":"write",` + at + `"graphql":{"type":"mutation","fields":["create*"]}}]}]}`)))(t)
	var out strings.Builder
	connectors.SummariseConnector(&out, c, nil, connectors.Publisher{}, 80)
	for _, want := range []string{"\n  queries     1 operation for queries of GraphQL\n",
		"\n  writes      3 operations with POST: stored, merge, write\n", "\n  asks you    1: merge\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
}

func TestTheSummaryCountsGroups(t *testing.T) {
	var list []string
	for i := range 30 {
		group, method := "things", "GET"
		if i > 20 {
			group, method = "issues", []string{"POST", "DELETE"}[i%2]
		}
		list = append(list, fmt.Sprintf(`{"name":"%s.x%d","method":"%s","path":"/%d","hosts":["a.example"]}`, group, i,
			method, i))
	}
	c := must.Get(spec.Parse([]byte(`{"schema_version":"aileron.connector.v1",
		"connector":{"fqn":"github://acme/m","version":"1.0.0"},"tools":[{"name":"m","operations":[` +
		strings.Join(list, ",") + `]}]}`)))(t)
	var out strings.Builder
	connectors.SummariseConnector(&out, c, nil, connectors.Publisher{}, 80)
	want := "\n  groups      2, as read/write/delete: issues 0/4/5, things 21/0/0\n"
	if !strings.Contains(out.String(), want) {
		t.Errorf("%q is not in\n%s", want, out.String())
	}
}
