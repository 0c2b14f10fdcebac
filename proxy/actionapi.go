package proxy

import (
	"fmt"
	"io"
	"net/http"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/action"
)

// actionsPath is the endpoint that runs an action by name.
const actionsPath = "/v1/actions/run"

// maxStepBody bounds what is read of the response to a step that is not the last, which is not passed on.
const maxStepBody = 16 << 20

// runAction responds to a request that names an action and its arguments. Its operations are those of exactly the
// connectors that it pins, which [Grants].Pinned has, and each of its calls is decided by two boundaries.
func (p *Plane) runAction(listener Listener, r *http.Request) *http.Response {
	return p.serveCall(listener, r, audit.SourceConnectorShim, func(c *callRequest) (*http.Response, *Denial) {
		var call spec.ActionCall
		d := c.read(func(body []byte) (err error) {
			call, err = spec.ParseActionCall(body)
			return err
		})
		if d != nil {
			return nil, c.reject(nil, nil, d)
		}
		grants := p.grants.Load()
		a, ok := grants.Actions[call.Action]
		switch {
		case !ok:
			return nil, c.reject(nil, nil, denyUnknownAction(call.Action, grants))
		case a.Linked == nil:
			return nil, c.reject(nil, map[string]any{"action": call.Action}, a.deny(call.Action))
		}
		return (&actionCall{c, a.Linked, grants}).run(call.Args)
	})
}

// actionCall is a call of an action.
type actionCall struct {
	*callRequest
	action *action.Linked
	grants *Grants
}

// actionStep is one call of an action.
type actionStep struct {
	number int // from 1
	op     *spec.Operation
	in     spec.Invocation
	grants *Grants // of the pinned connector
}

// run runs the steps in their order, and returns the response to the last, or to the first that an upstream refuses.
// Nothing is sent if a step would be denied.
func (c *actionCall) run(args map[string]any) (*http.Response, *Denial) {
	steps, d := c.steps(args)
	if d != nil {
		return nil, d
	}
	for _, s := range steps {
		d, err := c.check(s)
		if err != nil {
			return nil, c.reject(s.op, c.fields(s), deny(reasonArguments, "%s%v", c.where(s), err))
		}
		if d != nil { // this step alone is run below: it is denied there, with the row of a request
			steps = []actionStep{s}
			break
		}
	}
	for i, s := range steps {
		x, res, d := c.call(s).do(s.in)
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
	return nil, c.reject(nil, nil, deny(reasonPanic, "the action has no step"))
}

// steps returns the calls that arguments make.
func (c *actionCall) steps(args map[string]any) ([]actionStep, *Denial) {
	calls, err := c.action.Invocations(args)
	if err != nil {
		return nil, c.reject(nil, c.fields(actionStep{}), deny(reasonArguments, "%v", err))
	}
	var steps []actionStep
	for i, in := range calls {
		s := actionStep{i + 1, c.action.Operations[i], in, c.grants.Pinned[c.action.Operations[i].Connector.Hash]}
		if s.grants == nil {
			d := deny(ReasonPinMissing, "%s@%s is not in force any more", s.op.Connector.FQN, s.op.Connector.Version)
			d.subject = c.action.Name
			return nil, c.reject(s.op, c.fields(s), d)
		}
		steps = append(steps, s)
	}
	return steps, nil
}

// check returns the denial that a step will get, or the mistake in its arguments.
func (c *actionCall) check(s actionStep) (*Denial, error) {
	call, err := s.op.Call(s.in)
	if err != nil {
		return nil, err
	}
	if d := c.within(s, call.Target); d != nil {
		return d, nil
	}
	x := &Exchange{grants: s.grants, match: spec.Match{Operation: s.op}}
	if d := x.bindCredential(); d != nil {
		return d, nil
	}
	d := Decide(callQuestion(s.grants.Index, call))
	return d.Denial, nil
}

// call returns the call of a step.
func (c *actionCall) call(s actionStep) *operationCall {
	return &operationCall{callRequest: c.callRequest, grants: s.grants, fields: c.fields(s),
		within: func(_ *spec.Operation, t spec.Target) *Denial { return c.within(s, t) }}
}

// within denies a request of a step that one of the two boundaries does not allow: it is to be an operation of the
// pinned connector, the one of the step, and one that the action lists.
func (c *actionCall) within(s actionStep, t spec.Target) *Denial {
	m, no := s.grants.Index.Match(t)
	if no != nil {
		d := Question{}.denyNoMatch(no)
		d.Boundary = action.BoundaryConnector
		return d
	}
	err := c.action.Allows(m.Operation)
	if err == nil && m.Operation == s.op {
		return nil
	}
	d := deny(reasonNotMatched, "%sthe request is %s %s, which the action does not list in its capabilities",
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
func (c *actionCall) skip(s actionStep, body io.ReadCloser) *Denial {
	n, err := io.Copy(io.Discard, io.LimitReader(body, maxStepBody+1))
	_ = body.Close()
	switch {
	case err != nil:
		return c.reject(s.op, c.fields(s), deny(reasonTruncated, "%sthe response broke off, so no further step was run",
			c.where(s)))
	case n > maxStepBody:
		return c.reject(s.op, c.fields(s), deny(reasonTooLarge, "%sthe response is larger than %d bytes, so no further "+
			"step was run", c.where(s), maxStepBody))
	}
	return nil
}
