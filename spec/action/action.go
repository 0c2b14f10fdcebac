// Package action reads action files: what a person lets an agent do with connectors, under one name.
//
// An action file is Markdown with TOML between two lines +++ at its top. [Parse] reads one strictly and returns an
// [Action]; its error holds a [spec.Diagnostic] for each mistake, with its line. [Action.Link] finds the operations of
// its steps in exactly the connectors that it pins, and [Linked.Invocations] returns the calls that arguments make:
//
//	a, err := action.Parse(data)
//	linked, err := a.Link(func(pin action.Pin) (*spec.Connector, error) { return store.Load(pin.Hash) })
//	calls, err := linked.Invocations(args)
//
// Two boundaries hold a call, and a [BoundaryError] names the one that was met: what the pinned connector declares, and
// what the action lists of it in its capabilities. An argument fills a value of a step and never becomes a key, another
// value or another step: values are replaced in the parsed tree, once.
//
// [Library] is the directory of a home that holds action files. Nothing else is a source of actions: what a project or
// an image has is not read.
//
// parse.go splits the file, reader.go reads its tables, and template.go the values with arguments in them. link.go
// holds the two boundaries, and library.go the directory.
package action

import (
	"encoding/json"
	"strings"

	"github.com/ALRubinger/aileron/spec"
)

// Action is an action file that is valid in itself.
type Action struct {
	Name        string // of the file, without .md, and of the command in a sandbox
	Version     string // strict SemVer
	Description string // one line
	Inputs      []spec.Input
	Requires    []Pin
	Steps       []Step
	Body        string // Markdown, for people and agents; it decides nothing

	Hash string // "sha256:…" of Raw
	Raw  []byte // the file
}

// Pin is a connector that an action requires: exactly these bytes.
type Pin struct {
	FQN          spec.FQN
	Version      string
	Hash         string   // "sha256:…"
	Capabilities []string // operations of the connector: NAME, or TOOL/NAME
}

// String returns FQN@VERSION.
func (p Pin) String() string { return string(p.FQN) + "@" + p.Version }

// Step is one call of an operation.
type Step struct {
	Connector       spec.FQN // "": the only required one with such a tool
	Tool, Operation string
	args            *table
}

// Args returns the arguments of the step as JSON for a person. ${args.NAME} stands in it for an argument of the action.
func (s Step) Args() string {
	if s.args == nil {
		return "{}"
	}
	names := map[string]bool{}
	s.args.names(names)
	values := map[string]any{}
	for name := range names {
		values[name] = "${args." + name + "}"
	}
	filled, _, err := s.args.fill(newArguments(values))
	if err != nil {
		return err.Error()
	}
	var out strings.Builder
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(filled); err != nil {
		return err.Error()
	}
	return strings.TrimSpace(out.String())
}

// pin returns the required connector of that name.
func (a *Action) pin(fqn spec.FQN) (Pin, bool) {
	for _, p := range a.Requires {
		if p.FQN == fqn {
			return p, true
		}
	}
	return Pin{}, false
}
