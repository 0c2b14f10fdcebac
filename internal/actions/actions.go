// Package actions is what commands do with actions, without a command line: [Find] finds one, [Describe] and [Print]
// describe what it does, [Adder] adds actions, and [Call] runs one through the API of a session.
package actions

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/internal/connectors"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/home"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/action"
	"github.com/ALRubinger/aileron/spec/store"
)

// Find returns the action file of that name.
func Find(d *home.Dir, name string) (action.File, error) {
	l, err := d.Actions()
	if err != nil {
		return action.File{}, err
	}
	f, err := l.Find(name)
	if errors.Is(err, action.ErrNotAdded) {
		all, _ := l.List()
		var names []string
		for _, f := range all {
			names = append(names, f.Name)
		}
		return f, hint.DidYouMean(hint.New(err, "see what there is with: aileron action list"), hint.Nearest(name, names))
	}
	return f, err
}

// Link returns an action with the connectors that it pins, as the sessions do.
func Link(s *store.Store, f *action.Action) (*action.Linked, error) {
	return f.Link(func(pin action.Pin) (*spec.Connector, error) {
		c, err := s.Load(pin.Hash)
		if !errors.Is(err, fs.ErrNotExist) {
			return c, store.Hint(err)
		}
		entries, err := s.List()
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if e.FQN == pin.FQN && e.Version == pin.Version {
				return nil, hint.New(&store.HashError{What: "the installed " + e.String(), Want: pin.Hash, Got: e.Hash,
					Of: e.String()},
					"correct the hash if these are the bytes that you mean")
			}
		}
		return nil, hint.New(fmt.Errorf("%w", store.ErrNotInstalled), "install what actions pin with: aileron sync")
	})
}

// InstalledPins returns the names of the connectors that an action pins, for --connector: those that are installed in
// some version. A call of an action whose connectors are not installed is denied by the session, which records that.
func InstalledPins(d *home.Dir, pins []action.Pin) ([]string, error) {
	names := connectors.NewNames(d)
	if err := names.ReadInstalled(); err != nil {
		return nil, err
	}
	used := []string{}
	for _, p := range pins {
		if slices.Contains(names.Installed, p.FQN) {
			used = append(used, string(p.FQN))
		}
	}
	return used, nil
}

// JSON is an action file, as action add, list and show print it.
type JSON struct {
	Name        string      `json:"name"`
	Version     string      `json:"version"`
	Hash        string      `json:"hash"`
	Description string      `json:"description"`
	OK          bool        `json:"ok"` // it can be run
	Edited      bool        `json:"edited"`
	Error       string      `json:"error,omitempty"`
	Boundary    string      `json:"boundary,omitempty"` // that Error is about
	Inputs      []inputJSON `json:"inputs"`
	Connectors  []pinJSON   `json:"connectors"`
	Calls       []callJSON  `json:"calls"`

	Already bool `json:"-"` // it was added before
}

type inputJSON struct {
	Name        string   `json:"name"`
	Type        string   `json:"type,omitempty"`
	Required    bool     `json:"required"`
	Description string   `json:"description,omitempty"`
	Values      []string `json:"values,omitempty"`
}

type pinJSON struct {
	FQN          string   `json:"fqn"`
	Version      string   `json:"version"`
	Hash         string   `json:"hash"`
	Capabilities []string `json:"capabilities"`
}

type callJSON struct {
	Tool      string   `json:"tool"`
	Operation string   `json:"operation"`
	Method    string   `json:"method,omitempty"`
	Path      string   `json:"path,omitempty"`
	Hosts     []string `json:"hosts,omitempty"`
}

// Describe returns what an action file is, and whether it can be run.
func Describe(s *store.Store, f action.File) JSON {
	j := JSON{Name: f.Name, Inputs: []inputJSON{}, Connectors: []pinJSON{}, Calls: []callJSON{}}
	if f.Action == nil {
		return j.failed(f.Err)
	}
	j.Version, j.Hash, j.Description = f.Action.Version, f.Action.Hash, f.Action.Description
	j.OK, j.Edited = true, !f.Added
	for _, in := range f.Action.Inputs {
		j.Inputs = append(j.Inputs, inputJSON{in.Name, in.Type, in.Required, in.Description, in.Values})
	}
	for _, p := range f.Action.Requires {
		j.Connectors = append(j.Connectors, pinJSON{string(p.FQN), p.Version, p.Hash, p.Capabilities})
	}
	linked, err := Link(s, f.Action)
	if err != nil {
		for _, step := range f.Action.Steps {
			j.Calls = append(j.Calls, callJSON{Tool: step.Tool, Operation: step.Operation})
		}
		return j.failed(err)
	}
	for _, op := range linked.Operations {
		j.Calls = append(j.Calls, callJSON{op.Tool, op.Name, op.Method, op.Path.String(), connectors.HostNames(op.Hosts)})
	}
	return j
}

func (j JSON) failed(err error) JSON {
	j.OK, j.Error = false, failure.AsLine(err.Error())
	if h := hint.Of(err); h != "" {
		j.Error += "; " + failure.AsLine(h)
	}
	var boundary *action.BoundaryError
	if errors.As(err, &boundary) {
		j.Boundary = boundary.Boundary
	}
	return j
}

// Fault returns the errors of an action file, each with its place.
func Fault(src string, err error) error {
	list := action.Diagnostics(err)
	if len(list) == 0 {
		err = fmt.Errorf("read the action %s: %w", src, err)
		if !errors.Is(err, fs.ErrNotExist) {
			err = hint.New(err, "an action is a regular file; docs/actions.md has its form")
		}
		return failure.OfInput(err, failure.ReasonAction)
	}
	var lines []string
	for _, d := range list {
		lines = append(lines, d.Error())
	}
	err = fmt.Errorf("read the action %s: %s", src, strings.Join(lines, "; "))
	return failure.Input(hint.New(err, "docs/actions.md has its form"), failure.ReasonAction)
}
