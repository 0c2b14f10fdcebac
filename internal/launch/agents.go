package launch

import (
	"slices"

	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/sandbox/agents"
)

// AgentNeeds returns the further commands that an agent's image must have, and the shell in which its tools run.
func AgentNeeds(agent agents.Agent) []string { return append(slices.Clone(agent.Commands[1:]), "sh") }

// NoAgent returns the error about a name that is not an agent's.
func NoAgent(name string) error {
	err := failure.Usagef("there is no agent %q; known: %s", name, hint.Listed(agents.Names()))
	if near := hint.Nearest(name, agents.Names()); near != "" {
		return hint.DidYouMean(err, near)
	}
	return hint.New(err, "for any other command use: aileron sandbox run -- CMD")
}
