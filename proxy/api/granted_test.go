package api

import (
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/spec"
)

// A denial lists what comes closest to what was asked for.
func TestADenialListsTheNearestOperations(t *testing.T) {
	var all []*spec.Connector
	for _, name := range []string{"one", "two"} {
		manifest := `[connector]
name = "github://acme/` + name + `"
version = "1.0.0"
[capabilities.network]
hosts = ["` + name + `.example"]
[capabilities.credential]
kind = "bearer"
[provides]
intents = ["test"]
`
		get := `"operations":[{"name":"get","method":"GET","path":"/a","credential":"bearer",` +
			`"hosts":["` + name + `.example"]}]`
		doc := `{"schema_version":"aileron.connector.v1","connector":{"fqn":"github://acme/` + name + `","version":"1.0.0"},
"tools":[{"name":"a",` + get + `},{"name":"b",` + strings.Replace(get, `"/a"`, `"/b"`, 1) + `}]}`
		all = append(all, must.Get(spec.Load([]byte(manifest), []byte(doc)))(t))
	}
	index := must.Get(spec.NewIndex(all))(t)
	for _, c := range []struct {
		connector, tool string
		want            []string
	}{
		{"github://acme/two", "b", []string{"operation:github://acme/two b get"}},
		{"github://acme/two", "none", []string{"operation:github://acme/two a get", "operation:github://acme/two b get"}},
		{"github://acme/none", "a", []string{"tool:github://acme/one a", "tool:github://acme/one b",
			"tool:github://acme/two a", "tool:github://acme/two b"}},
	} {
		of, d := unknownOperation(t.Context(), index,
			spec.Invocation{Connector: c.connector, Tool: c.tool, Operation: "none"})
		if known := c.connector == "github://acme/two"; known != (of != nil) || known && string(of.FQN) != c.connector {
			t.Errorf("%s %s: it is of %v", c.connector, c.tool, of)
		}
		slices.Sort(d.Granted)
		if !slices.Equal(d.Granted, c.want) {
			t.Errorf("%s %s: granted is %q, want %q", c.connector, c.tool, d.Granted, c.want)
		}
	}
}
