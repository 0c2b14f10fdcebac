// Package agents describes the coding agents that aileron launches by name: the
// command of each, how its image is built, and what it needs to start where only
// declared hosts answer. Call [Find] with a name, or [Names] for all of them.
//
// The package holds data and nothing else. It grants an agent nothing: what an
// agent may reach is decided by the installed connectors alone, and a command
// that is not described here runs the same way with aileron sandbox run -- CMD.
//
// An agent NAME is three files: NAME.go with its [Agent], NAME.Dockerfile with
// the recipe of its image, and its line in agents.go. One without a recipe runs in an image of the user's alone.
package agents

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Agent is one coding agent.
type Agent struct {
	Name     string
	Commands []string          // that must be on the image's PATH; the first is the one that runs
	Args     []string          // before the user's own arguments
	Env      map[string]string // for the sandbox; never a key, never a placeholder of one

	// Prelude is a shell script that runs in the sandbox before the command: it
	// answers what the agent would ask at its first start, and changes no other
	// setting. The command and its arguments are its positional parameters. Where
	// it fails, the agent starts all the same, and asks.
	Prelude string

	// NotesAt is where the agent looks for notes that are for every user of its
	// machine: aileron puts there what the agent should know about its sandbox. ""
	// where the Prelude passes them on, from /etc/aileron/notes.md.
	NotesAt string

	// State are directories below HOME that have what the agent needs to go on
	// with a conversation.
	State []string

	// Resume are the arguments with which the agent goes on with the last
	// conversation in its State.
	Resume []string

	// Unattended is how the agent is told to use its tools without asking.
	Unattended Switch
	// Rights are variables, other than those of Unattended, in which the agent takes what it may do without asking.
	Rights []string
	// NeverAsks: it uses its tools without asking, and has no Unattended.
	NeverAsks bool

	// Models are where it takes the endpoints of models from the environment when it runs on this host. Nil: it does not.
	Models []Endpoint

	// MCP is how the agent is told of an MCP server when it runs on this host. In a sandbox it has commands.
	MCP Registration

	// Recipe is the Dockerfile of the agent's image. It begins with
	// ARG BASE and ends FROM ${BASE}, changing neither the base's user nor
	// its entry point, and copies no context. The build argument EXTRA_CA
	// may hold roots, as PEM, of a network that inspects TLS: they are trusted
	// while the image is built, and are not part of it. Nil: there is none, and
	// the user brings the agent.
	Recipe []byte

	// Layer is how the agent is put on an image that is not aileron's own.
	Layer Layer

	// Optional are requests that the agent sends of its own accord, and works
	// without. Nothing is allowed because of them: where they are denied, the
	// report of a session counts them in one line. Each is as the audit log has it.
	Optional []Request

	// Connectors are the short names of connectors of the catalogue of which the
	// agent needs one, for messages.
	Connectors []string
}

// Switch is an argument of an agent, with variables that it needs beside it, or such variables alone.
type Switch struct {
	Arg string
	Env map[string]string

	// Behind are subcommands that take Arg behind their name. Where there are any, no other subcommand takes it. Without
	// them Arg precedes all arguments, and every subcommand takes it.
	Behind []string
}

// String returns the switch as a shell takes it.
func (s Switch) String() string {
	if s.Arg != "" {
		return s.Arg
	}
	var all []string
	for name, value := range s.Env {
		all = append(all, name+"="+value)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// In returns the arguments with the switch among them. It reports false for a subcommand that does not take it.
func (s Switch) In(args []string) (with []string, ok bool) {
	at := 0
	if len(s.Behind) > 0 && len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		if at = 1; !slices.Contains(s.Behind, args[0]) {
			return args, false
		}
	}
	if s.Arg == "" || slices.Contains(args, s.Arg) { // the user's own
		return args, true
	}
	return slices.Insert(slices.Clone(args), at, s.Arg), true
}

// Request is a request to a host, at port 443.
type Request struct{ Method, Host, Path string }

// Start returns the script that runs before the agent: its Prelude and, unless
// stateDir is "", what leads its State to that directory. What an image has in
// the place of a directory of the state stays there.
func (a Agent) Start(stateDir string) string {
	var script strings.Builder
	for _, dir := range a.State {
		if stateDir == "" {
			break
		}
		to := path.Join(stateDir, strings.ReplaceAll(dir, "/", "-"))
		fmt.Fprintf(&script, "mkdir -p %[1]q \"$HOME\"/%[2]q\n[ -e \"$HOME\"/%[3]q ] || ln -s %[1]q \"$HOME\"/%[3]q\n",
			to, path.Dir(dir), dir)
	}
	return script.String() + a.Prelude
}

// all returns every agent.
func all() []Agent {
	return []Agent{claude(), codex(), goose(), opencode(), pi()}
}

// Find returns the agent with that name. Each call returns a new value, which the
// caller may change.
func Find(name string) (Agent, bool) {
	for _, a := range all() {
		if a.Name == name {
			return a, true
		}
	}
	return Agent{}, false
}

// SkipsQuestions reports whether a variable is one by which some agent would use its tools without asking. A project
// must not set it: that is its user's decision.
func SkipsQuestions(variable string) bool {
	return slices.ContainsFunc(all(), func(a Agent) bool {
		_, ok := a.Unattended.Env[variable]
		return ok || slices.Contains(a.Rights, variable)
	})
}

// Names returns the names of all agents, sorted.
func Names() []string {
	var names []string
	for _, a := range all() {
		names = append(names, a.Name)
	}
	slices.Sort(names)
	return names
}
