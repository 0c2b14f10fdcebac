package connectors

import (
	"slices"

	"github.com/ALRubinger/aileron/sandbox/agents"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/catalog"
	"github.com/ALRubinger/aileron/vault"
	"strings"
)

func IsBound(c *spec.Connector, bound []vault.Binding) bool {
	need := c.Credential()
	return need != nil && slices.ContainsFunc(bound, func(b vault.Binding) bool {
		return b.Connector == string(c.FQN) && spec.Kind(b.Kind) == need.Kind
	})
}

// IsModel reports whether a connector is for a model provider of the agent.
func IsModel(c *spec.Connector, agent agents.Agent) bool {
	return slices.ContainsFunc(agent.Connectors, func(name string) bool {
		service := strings.TrimPrefix(c.FQN.Service(), catalog.ServicePrefix)
		return service == name // not a suffix: local-openai is another provider than openai
	})
}
