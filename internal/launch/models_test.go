package launch

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/sandbox/agents"
	"github.com/ALRubinger/aileron/spec"
)

// connectorOf returns a connector of a host, with a placeholder.
func connectorOf(t *testing.T, name, host, credential, placeholders string) *spec.Connector {
	t.Helper()
	manifest := fmt.Sprintf("[connector]\nname = \"github://acme/%s\"\nversion = \"1.0.0\"\n[capabilities.network]\n"+
		"hosts = [\"%s\"]\n[capabilities.credential]\nkind = \"bearer\"\n[provides]\nintents = [\"x\"]\n", name, host)
	text := fmt.Sprintf(`{"schema_version":"aileron.connector.v1","connector":{"fqn":"github://acme/%s","version":"1.0.0"},
		"placeholders":[%s],"tools":[{"name":"t","operations":[{"name":"o","method":"POST","path":"/v1/x","hosts":["%s"]%s},
		{"name":"other","method":"GET","path":"/v1/y","hosts":["%[3]s"],"credential":"bearer"}]}]}`,
		name, placeholders, host, credential)
	if credential == "" {
		text = strings.Replace(text, `"],"credential":"bearer"}`, `"]}`, 1)
		manifest = strings.Replace(manifest, "[capabilities.credential]\nkind = \"bearer\"\n", "", 1)
	}
	return must.Get(spec.Load([]byte(manifest), []byte(text)))(t)
}

func TestAModelsEndpointHasKeysOfItsSessionAlone(t *testing.T) {
	const bearer = `,"credential":"bearer"`
	place := func(name string) string { return `{"env":"` + name + `","value":"stays-outside"}` }
	n := 0
	random := func() string { n++; return fmt.Sprint("random", n) }
	endpoints := []agents.Endpoint{{Variable: "A_BASE_URL", Host: "api.a.example"},
		{Variable: "B_BASE_URL", Host: "api.b.example", Base: "/v1"}, {Variable: "C_BASE_URL", Host: "api.c.example"},
		{Variable: "D_BASE_URL", Host: "api.d.example"}, {Variable: "E_BASE_URL", Host: "api.e.example"}}
	ms := modelsOf(endpoints, []*spec.Connector{
		connectorOf(t, "a", "api.a.example", bearer, place("A_API_KEY")),
		connectorOf(t, "a2", "api.a.example", bearer, place("A_OAUTH_TOKEN")),
		connectorOf(t, "b", "api.b.example", bearer, place("B_API_KEY")),
		connectorOf(t, "c", "api.c.example", bearer, ""),                 // no variable for a key
		connectorOf(t, "d", "api.d.example", "", place("D_API_KEY")),     // no credential
		connectorOf(t, "f", "api.f.example", bearer, place("E_API_KEY")), // of another host
	}, random)
	var lines []string
	infof := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	env := ms.environment("http://127.0.0.1:9", []string{"B_BASE_URL=https://mine.example", "A_BASE_URL="}, infof)
	want := []string{"A_BASE_URL=http://127.0.0.1:9/model/api.a.example", "A_API_KEY=random1-stays-outside",
		"A_OAUTH_TOKEN=random2-stays-outside"}
	if !slices.Equal(env, want) {
		t.Errorf("the variables are %q, want %q", env, want)
	}
	if len(lines) != 1 || lines[0] != "aileron: your B_BASE_URL stays, so requests to it take the proxy" {
		t.Errorf("the lines are %q", lines)
	}
	served := ms.served()
	if len(served) != 2 || !slices.Equal(served[0].Keys, []string{"random1-stays-outside", "random2-stays-outside"}) ||
		served[1].Base != "/v1" || served[1].Host != "api.b.example" {
		t.Errorf("the listener serves %+v", served)
	}
}
