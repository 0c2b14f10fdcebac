package launch

import (
	"maps"
	"os"
	"slices"

	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/sandbox"
	"github.com/ALRubinger/aileron/sandbox/agents"
)

// AgentNeeds returns the further commands that an agent's image must have, and the shell in which its tools run.
func AgentNeeds(agent agents.Agent) []string { return append(slices.Clone(agent.Commands[1:]), "sh") }

// LayerOf returns what puts an agent on an image that is not aileron's own; nil if there is no way.
func LayerOf(agent agents.Agent) *sandbox.Layer {
	recipe := agent.Layer.Recipe()
	if recipe == nil {
		return nil
	}
	return &sandbox.Layer{Name: agent.Name, Commands: agent.Commands, From: sandbox.AgentImage(agent.Name, agent.Recipe),
		Recipe: recipe, Glibc: agent.Layer.Glibc, Libraries: agent.Layer.Libraries}
}

// ImageFor returns the image of an agent by name, and the agent; aileron's base image for "".
func ImageFor(name string) (sandbox.Image, agents.Agent, error) {
	if name == "" {
		return sandbox.BaseImage(), agents.Agent{}, nil
	}
	agent, ok := agents.Find(name)
	if !ok {
		return sandbox.Image{}, agent, NoAgent(name)
	}
	return sandbox.AgentImage(agent.Name, agent.Recipe), agent, nil
}

// SwitchOn returns the arguments of an agent that is told not to ask, and adds the variables that go with them. It
// prints which switch that is, and reports false for arguments with which there is none.
func SwitchOn(agent *agents.Agent, args []string, infof func(format string, args ...any)) ([]string, bool) {
	if agent.NeverAsks {
		return args, true
	}
	with, ok := agent.Unattended.In(args)
	if !ok {
		infof("aileron: unattended: %s %.40q has no switch for that, and asks as it is configured", agent.Name, args[0])
		return args, false
	}
	if agent.Env == nil {
		agent.Env = map[string]string{}
	}
	maps.Copy(agent.Env, agent.Unattended.Env)
	infof("aileron: unattended: %s uses its tools without asking (%s); --unattended=false lets it ask", agent.Name,
		agent.Unattended)
	return with, true
}

// AgentOnHost returns the command of an agent on this host, with the user's arguments. It is told of aileron mcp, which
// serves the operations of its session as tools; infof prints why where it cannot be. getenv returns a variable of the
// user's environment.
func AgentOnHost(agent agents.Agent, args []string, getenv func(string) string,
	infof func(format string, args ...any)) HostCommand {
	var env []string
	for k, v := range agent.Env {
		env = append(env, k+"="+v)
	}
	program, err := os.Executable()
	with, variable, ok := agent.MCP.Register(program, args, getenv)
	switch {
	case err == nil && ok:
		args = with
		if variable != "" {
			env = append(env, variable)
		}
	case agent.MCP.Variable != "":
		infof("aileron: %s is not told of the session's operations as tools: %s is no object of JSON", agent.Name,
			agent.MCP.Variable)
	}
	file := ""
	if ok {
		file = agent.MCP.FileFor(program)
	}
	return HostCommand{Agent: agent.Name, File: file, Args: slices.Concat(agent.Commands[:1], agent.Args, args), Env: env,
		Models: agent.Models}
}

// NoAgent returns the error about a name that is not an agent's.
func NoAgent(name string) error {
	err := failure.Usagef("there is no agent %q; known: %s", name, hint.Listed(agents.Names()))
	if near := hint.Nearest(name, agents.Names()); near != "" {
		return hint.DidYouMean(err, near)
	}
	return hint.New(err, "for any other command use: aileron sandbox run -- CMD")
}
