package proxy

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/spec"
)

const graphQLSpec = `{"schema_version":"aileron.connector.v1",
"connector":{"fqn":"github://acme/judged","version":"1.0.0"},
"tools":[{"name":"judged","operations":[
 {"name":"merge","method":"POST","path":"/graphql","hosts":["api.good.example"],"credential":"bearer",
   "graphql":{"type":"mutation","fields":["merge*"]},"approval":"required","inputs":[{"name":"query"}]},
 {"name":"write","method":"POST","path":"/graphql","hosts":["api.good.example"],"credential":"bearer",
   "graphql":{"type":"mutation","fields":["*"]},"inputs":[{"name":"query"}]},
 {"name":"read","method":"POST","path":"/graphql","hosts":["api.good.example"],"credential":"bearer",
   "graphql":{"type":"query","fields":["viewer"]},"inputs":[{"name":"query"}]},
 {"name":"get","method":"GET","path":"/graphql","hosts":["api.good.example"],"credential":"bearer",
   "graphql":{"type":"query","fields":["viewer"]},"inputs":[{"name":"query"}]}]}]}`

// newGraphQL is a world with the operations of graphQLSpec, all of them bound.
func newGraphQL(t testing.TB) *world {
	t.Helper()
	w := newJudged(t, hello)
	c := must.Get(spec.Load([]byte(judgedManifest), []byte(graphQLSpec)))(t)
	old := *w.plane.grants.Load()
	old.Index = must.Get(spec.NewIndex([]*spec.Connector{c}))(t)
	w.plane.SetGrants(&old)
	return w
}

func TestADocumentDecidesWhichOperationARequestIs(t *testing.T) {
	w := newGraphQL(t)
	for _, c := range []struct {
		body, operation, fields string
		reason                  Reason
		says                    string
	}{
		{`{"query":"{viewer{login}}"}`, "read", "viewer", "", ""},
		{`{"query":"mutation{a:create{id}}"}`, "write", "create", "", ""},
		{`[{"query":"{viewer{id}}"},{"query":"mutation{create{id}}"}]`, "read", "viewer,create", "", ""},
		{`{"query":"mutation{mergeIt{id}}"}`, "merge", "mergeIt", ReasonApproval, "merge asks for an approval"},
		{`{"query":"mutation{create{id} ...F} fragment F on M{b:mergeIt{id}}"}`, "merge", "create,mergeIt",
			ReasonApproval, "merge asks for an approval"},
		{`{"query":"{viewer{id} node{id}}"}`, "merge", "viewer,node", ReasonContent,
			`the query \"node\" of GraphQL is not allowed by judged merge; allowed are mutation:merge*, mutation:*, ` +
				`query:viewer`},
		{`{"query":"{viewer}","query":"mutation{mergeIt}"}`, "merge", "", ReasonUndecidable, `the key \"query\" twice`},
		{`{"query":"{viewer"}`, "merge", "", ReasonUndecidable, "its document is none of GraphQL"},
	} {
		before := len(w.requests())
		res, text := w.do(http.MethodPost, "https://api.good.example/graphql", c.body, "Content-Type", "application/json")
		row := w.last()
		if row.Operation != c.operation || row.Reason != string(c.reason) || !strings.Contains(text, c.says) ||
			(res.StatusCode == http.StatusOK) != (c.reason == "") || listed(row) != c.fields {
			t.Errorf("%s: %d %s %s, %v\n%s", c.body, res.StatusCode, row.Operation, row.Reason, row.Fields, text)
		}
		if sent := len(w.requests()) - before; (sent == 1) != (c.reason == "") {
			t.Errorf("%s: it was sent %d times", c.body, sent)
			continue
		}
		w.mu.Lock()
		if got := w.bodies[len(w.bodies)-1]; c.reason == "" && got != c.body {
			t.Errorf("%s arrived as %s", c.body, got)
		}
		w.mu.Unlock()
	}
}

// listed returns the fields of GraphQL that a row names.
func listed(row audit.Row) string {
	var names []string
	list, _ := row.Fields["graphql_fields"].([]any)
	for _, name := range list {
		text, _ := name.(string)
		names = append(names, text)
	}
	return strings.Join(names, ",")
}

func TestAGETOfGraphQLIsJudgedByItsQuery(t *testing.T) {
	w := newGraphQL(t)
	for document, reason := range map[string]Reason{"{viewer{id}}": "", "{node{id}}": ReasonContent,
		"mutation{create{id}}": ReasonUndecidable, "{viewer}&query={node}": ReasonUndecidable} {
		q := strings.ReplaceAll(url.QueryEscape(document), "%26query%3D", "&query=")
		res, text := w.do(http.MethodGet, "https://api.good.example/graphql?query="+q, "")
		if row := w.last(); row.Reason != string(reason) || (res.StatusCode == http.StatusOK) != (reason == "") ||
			row.Operation != "get" {
			t.Errorf("%s: %d %s %s\n%s", document, res.StatusCode, row.Operation, row.Reason, text)
		}
	}
}

// A call that names an operation is none of an earlier one, whose approval it would evade.
func TestACallByNameOfGraphQLIsThatOperation(t *testing.T) {
	w := newGraphQL(t)
	for _, c := range []struct{ operation, document, want string }{
		{"read", "{viewer{id}}", `"upstream_status":200`},
		{"write", "mutation{create{id}}", `"upstream_status":200`},
		{"write", "mutation{mergeIt{id}}", "one of judged merge, which takes precedence over write"},
		{"write", "mutation{create{id} mergeIt{id}}", "one of judged merge, which takes precedence over write"},
		{"merge", "mutation{mergeIt{id}}", "approval_required"},
		{"read", "mutation{create{id}}", "takes precedence over read"},
		{"merge", "mutation{create{id}}", "content_not_allowed"},
	} {
		call := strings.Replace(invocation(c.operation, `{"query":"`+c.document+`"}`), "calls", "judged", 2)
		if _, got := w.post(operationsPath, call); !strings.Contains(got, c.want) {
			t.Errorf("%s %s: %s, want %s", c.operation, c.document, got, c.want)
		}
	}
}
