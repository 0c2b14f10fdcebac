package action

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/spec"
)

// The boundaries of an action's calls.
const (
	BoundaryConnector = "connector" // what the pinned connector declares
	BoundaryAction    = "action"    // what the action lists in its capabilities
)

// BoundaryError is returned for a call that a boundary denies. Its hint is what to do about it.
type BoundaryError struct {
	Boundary  string
	Requested string   // the operation
	Granted   []string // the operations within the boundary
	Message   string
}

func (e *BoundaryError) Error() string { return e.Message }

// ErrorClass and ErrorReason return those in the error object of --json.
func (*BoundaryError) ErrorClass() string  { return "capability_denied" }
func (*BoundaryError) ErrorReason() string { return "operation_not_matched" }

// PinError is returned for a pin that cannot be used.
type PinError struct {
	Pin   Pin
	Other bool // the version is installed with other bytes
	Err   error
}

func (e *PinError) Error() string {
	return fmt.Sprintf("it pins %s (%s): %v", e.Pin, e.Pin.Hash, e.Err)
}
func (e *PinError) Unwrap() error { return e.Err }

// Linked is an action with the operations of its steps, in exactly the connectors that it pins.
type Linked struct {
	*Action
	Pinned     []*spec.Connector // of Requires, in their order
	Operations []*spec.Operation // of Steps, in their order
}

// Link finds the connectors that a pins and checks that each of its capabilities, and each of its steps, is within both
// boundaries. pinned returns the connector with the bytes of a pin, verified. The error is about the first mistake: a
// [*PinError] or a [*BoundaryError].
func (a *Action) Link(pinned func(Pin) (*spec.Connector, error)) (*Linked, error) {
	l := &Linked{Action: a}
	for _, p := range a.Requires {
		c, err := pinned(p)
		if err != nil {
			return nil, &PinError{Pin: p, Err: err}
		}
		if c.FQN != p.FQN || c.Version != p.Version || c.Hash != p.Hash {
			return nil, hint.New(&PinError{Pin: p, Other: true, Err: fmt.Errorf("these bytes are %s@%s", c.FQN, c.Version)},
				"write the name and the version that belong to the hash")
		}
		l.Pinned = append(l.Pinned, c)
		for _, capability := range p.Capabilities {
			if err := checkCapability(c, capability); err != nil {
				return nil, err
			}
		}
	}
	for i := range a.Steps {
		op, err := l.operation(a.Steps[i])
		if err == nil {
			err = l.Allows(op)
		}
		if err != nil {
			return nil, err
		}
		l.Operations = append(l.Operations, op)
	}
	return l, nil
}

// checkCapability returns an error if a capability is not one operation of c.
func checkCapability(c *spec.Connector, capability string) error {
	var found []string
	for _, t := range c.Tools {
		for _, op := range t.Operations {
			if names(capability, op) {
				found = append(found, op.Tool+"/"+op.Name)
			}
		}
	}
	switch len(found) {
	case 1:
		return nil
	case 0:
		return hint.New(&BoundaryError{Boundary: BoundaryConnector, Requested: capability, Granted: operationsOf(c),
			Message: fmt.Sprintf("it lists the capability %s, which is no operation of %s@%s", capability, c.FQN, c.Version)},
			"capabilities are operations; this connector has %s", brief(operationsOf(c)))
	}
	return hint.New(&BoundaryError{Boundary: BoundaryConnector, Requested: capability, Granted: found,
		Message: fmt.Sprintf("it lists the capability %s, which several tools of %s have", capability, c.FQN)},
		"write one of %s", strings.Join(found, ", "))
}

// names reports whether a capability names an operation of its connector.
func names(capability string, op *spec.Operation) bool {
	tool, name, withTool := cutCapability(capability)
	return name == op.Name && (!withTool || tool == op.Tool)
}

func operationsOf(c *spec.Connector) []string {
	var all []string
	for _, t := range c.Tools {
		for _, op := range t.Operations {
			all = append(all, op.Name)
		}
	}
	return all
}

// brief returns a list for a line.
func brief(list []string) string {
	const most = 12
	if len(list) <= most {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), len(list)-most)
}

// operation returns the operation that a step names.
func (l *Linked) operation(s Step) (*spec.Operation, error) {
	var found []*spec.Operation
	var tools []string
	for _, c := range l.Pinned {
		for _, t := range c.Tools {
			if s.Connector != "" && s.Connector != c.FQN {
				continue
			}
			tools = append(tools, t.Name)
			for _, op := range t.Operations {
				if t.Name == s.Tool && op.Name == s.Operation {
					found = append(found, op)
				}
			}
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return nil, hint.New(&BoundaryError{Boundary: BoundaryConnector, Requested: s.Tool + " " + s.Operation,
			Granted: tools, Message: fmt.Sprintf("it uses %s %s, which no connector that it pins has", s.Tool, s.Operation)},
			"correct tool and operation, or pin the connector that has them in [[requires.connectors]]")
	}
	return nil, hint.New(fmt.Errorf("it uses %s %s, which %s and %s have", s.Tool, s.Operation, found[0].Connector.FQN,
		found[1].Connector.FQN), "add to this [[execute]]: connector = %q", found[0].Connector.FQN)
}

// Allows returns an error if the action does not list op in its capabilities.
func (l *Linked) Allows(op *spec.Operation) error {
	pin, ok := l.pin(op.Connector.FQN)
	if ok && pin.Hash == op.Connector.Hash &&
		slices.ContainsFunc(pin.Capabilities, func(c string) bool { return names(c, op) }) {
		return nil
	}
	return hint.New(&BoundaryError{Boundary: BoundaryAction, Requested: op.Name, Granted: pin.Capabilities,
		Message: fmt.Sprintf("it uses %s %s and does not list it in the capabilities of %s", op.Tool, op.Name,
			op.Connector.FQN)},
		"add %q to the capabilities, or remove the [[execute]] that uses it", op.Name)
}

// Invocations returns the calls of the steps with the arguments in their places. Arguments are those of
// [spec.ReadObject]. The error is about the first mistake, and has no value of an argument.
func (l *Linked) Invocations(args map[string]any) ([]spec.Invocation, error) {
	if err := spec.CheckInputs(l.Inputs, args); err != nil {
		return nil, err
	}
	var calls []spec.Invocation
	filling := newArguments(args)
	for i, s := range l.Steps {
		filled, _, err := s.args.fill(filling)
		if err != nil {
			return nil, err
		}
		op := l.Operations[i]
		in, err := spec.NewInvocation(string(op.Connector.FQN), op.Tool, op.Name, filled.(map[string]any))
		if err != nil {
			return nil, err
		}
		calls = append(calls, in)
	}
	return calls, nil
}
