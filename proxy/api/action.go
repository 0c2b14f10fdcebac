package api

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/proxy"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/action"
)

// denyUnusable returns the denial of a call of an action that cannot be used.
func denyUnusable(a proxy.Action, name string) *proxy.Denial {
	d := a.Reason.Deny("the action %s cannot be used: %s", name, oneLine(a.Fault))
	var boundary *action.BoundaryError
	if errors.As(a.Fault, &boundary) {
		d.Reason, d.Boundary = proxy.ReasonNotMatched, boundary.Boundary
		d.Requested, d.Granted = "operation:"+boundary.Requested, operationWords(boundary.Granted)
	}
	if h := hint.Of(a.Fault); h != "" {
		d.Message += "; " + h
	}
	d.Subject = name
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
func denyUnknownAction(name string, g *proxy.Grants) *proxy.Denial {
	d := proxy.ReasonNotMatched.Deny("this session has no action of that name")
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
func describeActions(g *proxy.Grants) []ActionDescription {
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

// actionsPath is the endpoint that runs an action by name.
const actionsPath = "/v1/actions/run"

// maxStepBody bounds what is read of the response to a step that is not the last, which is not passed on.
const maxStepBody = 16 << 20

// runAction responds to a request that names an action and its arguments. Its operations are those of exactly the
// connectors that it pins, which [proxy.Grants].Pinned has, and each of its calls is decided by two boundaries.
func (c *call) runAction() (*http.Response, *proxy.Denial) {
	in, d := read(c, spec.ParseActionCall)
	if d != nil {
		return nil, d
	}
	grants := c.plane.Grants()
	a, ok := grants.Actions[in.Action]
	switch {
	case !ok:
		return nil, c.reject(nil, nil, denyUnknownAction(in.Action, grants))
	case a.Linked == nil:
		return nil, c.reject(nil, map[string]any{"action": in.Action}, denyUnusable(a, in.Action))
	}
	return (&actionCall{c, a.Linked, grants}).run(in.Args)
}

// actionCall is a call of an action.
type actionCall struct {
	*call
	action *action.Linked
	grants *proxy.Grants
}

// actionStep is one call of an action.
type actionStep struct {
	number int // from 1
	op     *spec.Operation
	in     spec.Invocation
	grants *proxy.Grants // of the pinned connector
}

// run runs the steps in their order, and returns the response to the last, or to the first that an upstream refuses.
// Nothing is sent if a step would be denied.
func (c *actionCall) run(args map[string]any) (*http.Response, *proxy.Denial) {
	steps, d := c.steps(args)
	if d != nil {
		return nil, d
	}
	for _, s := range steps {
		d, err := c.check(s)
		if err != nil {
			return nil, c.reject(s.op, c.fields(s), proxy.ReasonArguments.Deny("%s%v", c.where(s), err))
		}
		if d != nil { // this step alone is run below: it is denied there, with the row of a request
			steps = []actionStep{s}
			break
		}
	}
	for i, s := range steps {
		x, res, d := c.operation(s).do(s.in)
		if d != nil {
			return nil, d
		}
		if i == len(steps)-1 || res.StatusCode >= http.StatusBadRequest {
			return c.respond(x, res, c.action.Name)
		}
		if d := c.skip(s, res.Body); d != nil {
			return nil, d
		}
	}
	// action.Parse refuses an action without steps.
	return nil, c.reject(nil, nil, proxy.ReasonPanic.Deny("the action has no step"))
}

// steps returns the calls that arguments make.
func (c *actionCall) steps(args map[string]any) ([]actionStep, *proxy.Denial) {
	calls, err := c.action.Invocations(args)
	if err != nil {
		return nil, c.reject(nil, c.fields(actionStep{}), proxy.ReasonArguments.Deny("%v", err))
	}
	var steps []actionStep
	for i, in := range calls {
		s := actionStep{i + 1, c.action.Operations[i], in, c.grants.Pinned[c.action.Operations[i].Connector.Hash]}
		if s.grants == nil {
			d := proxy.ReasonPinMissing.Deny("%s@%s is not in force any more", s.op.Connector.FQN, s.op.Connector.Version)
			d.Subject = c.action.Name
			return nil, c.reject(s.op, c.fields(s), d)
		}
		steps = append(steps, s)
	}
	return steps, nil
}

// check returns the denial that a step will get, or the mistake in its arguments.
func (c *actionCall) check(s actionStep) (*proxy.Denial, error) {
	call, err := s.op.Call(s.in)
	if err != nil {
		return nil, err
	}
	if d := c.within(s, call.Target); d != nil {
		return d, nil
	}
	if s.op.Injection != nil {
		if _, d := s.grants.Credential(s.op); d != nil {
			return d, nil
		}
	}
	d := proxy.Decide(callQuestion(s.grants.Index, call))
	return d.Denial, nil
}

// operation returns the call of a step.
func (c *actionCall) operation(s actionStep) *operationCall {
	return &operationCall{call: c.call, grants: s.grants, fields: c.fields(s),
		within: func(t spec.Target) *proxy.Denial { return c.within(s, t) }}
}

// within denies a request of a step that one of the two boundaries does not allow: it is to be an operation of the
// pinned connector, the one of the step, and one that the action lists.
func (c *actionCall) within(s actionStep, t spec.Target) *proxy.Denial {
	m, no := s.grants.Index.Match(t)
	if no != nil {
		d := proxy.DenyNoMatch(no, false)
		d.Boundary = action.BoundaryConnector
		return d
	}
	err := c.action.Allows(m.Operation)
	if err == nil && m.Operation == s.op {
		return nil
	}
	d := proxy.ReasonNotMatched.Deny("%sthe request is %s %s, which the action does not list in its capabilities",
		c.where(s), m.Operation.Tool, m.Operation.Name)
	if err == nil {
		d.Message = fmt.Sprintf("%sthe arguments make a request of %s %s, and the step is %s %s", c.where(s),
			m.Operation.Tool, m.Operation.Name, s.op.Tool, s.op.Name)
	}
	d.Boundary, d.Requested = action.BoundaryAction, operationWord(m.Operation)
	for _, pin := range c.action.Requires {
		d.Granted = append(d.Granted, operationWords(pin.Capabilities)...)
	}
	return d
}

// fields returns the fields of the rows of a step, or of the whole call for the zero step.
func (c *actionCall) fields(s actionStep) map[string]any {
	f := map[string]any{"action": c.action.Name, "action_version": c.action.Version}
	if s.number > 0 && len(c.action.Steps) > 1 {
		f["step"] = s.number
	}
	return f
}

// where returns the step for the beginning of a message, if there are several.
func (c *actionCall) where(s actionStep) string {
	if len(c.action.Steps) == 1 {
		return ""
	}
	return fmt.Sprintf("step %d: ", s.number)
}

// skip reads the response to a step that is not the last. The next step follows only one that came to its end.
func (c *actionCall) skip(s actionStep, body io.ReadCloser) *proxy.Denial {
	n, err := io.Copy(io.Discard, io.LimitReader(body, maxStepBody+1))
	_ = body.Close()
	switch {
	case err != nil:
		return c.reject(s.op, c.fields(s), proxy.ReasonTruncated.Deny("%sthe response broke off, so no further step was run",
			c.where(s)))
	case n > maxStepBody:
		return c.reject(s.op, c.fields(s), proxy.ReasonTooLarge.Deny("%sthe response is larger than %d bytes, so no further "+
			"step was run", c.where(s), maxStepBody))
	}
	return nil
}
