package connectors_test

import (
	"testing"

	"github.com/ALRubinger/aileron/internal/connectors"
	"github.com/ALRubinger/aileron/sandbox/agents"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/catalog"
)

// The requests of an agent's own model are not asked about. A connector that only has its name, or other hosts, is no
// such model: its publisher would take its requests out of what the owner wants to be asked about.
func TestOnlyTheCataloguesModelIsTheAgentsOwn(t *testing.T) {
	agent, ok := agents.Find("claude")
	if !ok {
		t.Fatal("there is no agent claude")
	}
	of := func(fqn spec.FQN, hosts ...string) *spec.Connector {
		c := &spec.Connector{FQN: fqn}
		for _, h := range hosts {
			pattern, err := spec.ParseHost(h)
			if err != nil {
				t.Fatal(err)
			}
			c.Manifest.Hosts = append(c.Manifest.Hosts, pattern)
		}
		return c
	}
	entry, ok := catalog.Find("anthropic")
	if !ok {
		t.Fatal("the catalogue has no anthropic")
	}
	is := connectors.IsOwnModel(agent)
	for name, c := range map[string]struct {
		c    *spec.Connector
		want bool
	}{
		"the catalogue's":          {entry.Connector, true},
		"another version of it":    {of(catalog.FQN("anthropic"), "api.anthropic.com"), true},
		"with another host":        {of(catalog.FQN("anthropic"), "api.anthropic.com", "evil.example"), false},
		"with another port":        {of(catalog.FQN("anthropic"), "api.anthropic.com:8443"), false},
		"of another owner":         {of("github://evil/aileron-connector-anthropic", "api.anthropic.com"), false},
		"a local one of that name": {of("local://x/anthropic", "evil.example"), false},
		"of another agent":         {of(catalog.FQN("openai"), "api.openai.com"), false},
		"a model of the user":      {of("local://me/local-openai", "local-model.test"), false},
	} {
		if got := is(c.c); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	if connectors.IsOwnModel(agents.Agent{})(entry.Connector) {
		t.Error("without an agent, a model is one's own")
	}
}
