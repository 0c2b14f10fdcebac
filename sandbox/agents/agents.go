// Package agents knows the coding agents that aileron launches by name: which
// command each is, how its image is built, and what it needs to start where
// only declared hosts answer. One file per agent.
//
// It holds data and nothing else. An agent gets no right by standing here:
// what it may reach is decided by the installed connectors alone, and a
// command that no file here describes runs the same way with
// aileron sandbox run -- CMD.
package agents

import "slices"

// Agent is one coding agent.
type Agent struct {
	Name     string
	Commands []string          // binaries that must be on the image's PATH; the first is what is run
	Args     []string          // before the user's own arguments
	Env      map[string]string // set in the box; never a key, never a placeholder of one

	// Recipe is the Dockerfile of the agent's image. It begins with
	// ARG BASE and ends FROM ${BASE}, changing neither the base's user nor
	// its entry point, and copies no context. The build argument EXTRA_CA
	// may hold roots, as PEM, of a network that inspects TLS: they are trusted
	// while the image is built and stand nowhere in it.
	Recipe []byte

	// Hosts are what the agent calls besides its model provider, for people
	// to read: nothing is allowed because of them.
	Hosts []string

	// Connectors name the example connectors of which the agent needs one,
	// for messages.
	Connectors []string
}

// all is every agent that launch knows.
func all() []Agent {
	return []Agent{claude(), codex(), opencode()}
}

// Find gives the agent of that name. Each call gives a fresh value, which the
// caller may change.
func Find(name string) (Agent, bool) {
	for _, a := range all() {
		if a.Name == name {
			return a, true
		}
	}
	return Agent{}, false
}

// Names are the names that Find knows, sorted.
func Names() []string {
	var names []string
	for _, a := range all() {
		names = append(names, a.Name)
	}
	slices.Sort(names)
	return names
}
