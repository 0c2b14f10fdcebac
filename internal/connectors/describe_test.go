package connectors_test

import (
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/connectors"
	"github.com/ALRubinger/aileron/spec"
)

// What is shown before an installation names each tool that may be called, and each field.
func TestWhatABodyMayAskForIsShown(t *testing.T) {
	c := must.Get(spec.Parse([]byte(`{"schema_version":"aileron.connector.v1",
		"connector":{"fqn":"github://acme/m","version":"1.0.0"},"tools":[{"name":"m","operations":[
		{"name":"mcp","method":"POST","path":"/mcp","hosts":["mcp.example.org"],
		"mcp":{"tools":["a","b","c","d","e","f","search_*"],"methods":["prompts/get"]}},
		{"name":"changes","method":"POST","path":"/graphql","hosts":["mcp.example.org"],
		"graphql":{"type":"mutation","fields":["create*","addA","addB","addC","addD","addE"]}}]}]}`)))(t)
	var out strings.Builder
	connectors.PrintConnector(&out, c, connectors.Publisher{}, 0)
	for _, want := range []string{"tools of MCP: a|b|c|d|e|… (2 more, below)", "methods of MCP: prompts/get",
		"a tool of mcp is one of a, b, c, d, e, f, search_*",
		"mutation of GraphQL: create*|addA|addB|addC|addD|… (1 more, below)",
		"a field of changes is one of create*, addA, addB, addC, addD, addE"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
	j := connectors.DescribeConnector(c)
	if m := j.Operations[0].MCP; m == nil || len(m.Tools) != 7 || m.Methods[0] != "prompts/get" {
		t.Errorf("as JSON: %+v", m)
	}
	if g := j.Operations[1].GraphQL; g == nil || g.Type != "mutation" || len(g.Fields) != 6 || g.Hashes == nil {
		t.Errorf("as JSON: %+v", g)
	}
}
