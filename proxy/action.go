package proxy

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/spec/action"
)

// Action is an action file of the session's home.
type Action struct {
	Linked *action.Linked // nil: it cannot be used
	Fault  error          // why not, with a hint
	Reason Reason         // of the denial of its calls then: one of the reasons for actions
}

// deny returns the denial of a call of an action that cannot be used.
func (a Action) deny(name string) *Denial {
	d := deny(a.Reason, "the action %s cannot be used: %s", name, oneLine(a.Fault))
	var boundary *action.BoundaryError
	if errors.As(a.Fault, &boundary) {
		d.Reason, d.Boundary = reasonNotMatched, boundary.Boundary
		d.Requested, d.Granted = "operation:"+boundary.Requested, operationWords(boundary.Granted)
	}
	if h := hint.Of(a.Fault); h != "" {
		d.Message += "; " + h
	}
	d.subject = name
	return d
}

// maxFault bounds the text about an action file in a denial.
const maxFault = 400

// oneLine returns the first line of an error's text. What a file has is quoted there.
func oneLine(err error) string {
	text, _, more := strings.Cut(err.Error(), "\n")
	if len(text) > maxFault {
		text, more = strings.ToValidUTF8(text[:maxFault], ""), true
	}
	if more {
		text += " …"
	}
	return text
}

// operationWords returns the names of operations as entries of granted.
func operationWords(names []string) []string {
	var words []string
	for _, name := range names[:min(len(names), 32)] {
		words = append(words, "operation:"+name)
	}
	return words
}

// denyUnknownAction returns the denial of a call of an unknown action.
func denyUnknownAction(name string, g *Grants) *Denial {
	d := deny(reasonNotMatched, "this session has no action of that name")
	d.Requested = "action:" + name
	for _, other := range slices.Sorted(maps.Keys(g.Actions)) {
		if len(d.Granted) < 32 && g.Actions[other].Linked != nil {
			d.Granted = append(d.Granted, "action:"+other)
		}
	}
	return d
}

// ActionDescription is an action that can be run.
type ActionDescription struct {
	Name        string             `json:"name"`
	Version     string             `json:"version"`
	Description string             `json:"description"`
	Inputs      []InputDescription `json:"inputs"`
}

// describeActions returns the actions that can be run, by name.
func (g *Grants) describeActions() []ActionDescription {
	all := []ActionDescription{}
	for _, name := range slices.Sorted(maps.Keys(g.Actions)) {
		a := g.Actions[name].Linked
		if a == nil {
			continue
		}
		d := ActionDescription{Name: a.Name, Version: a.Version, Description: a.Description, Inputs: []InputDescription{}}
		for _, in := range a.Inputs {
			d.Inputs = append(d.Inputs, InputDescription{Name: in.Name, Type: in.Type, Required: in.Required,
				Description: in.Description, Values: in.Values})
		}
		all = append(all, d)
	}
	return all
}
