package proxy

import (
	"bytes"
	"io"
	"net/http"
	"net/url"

	"github.com/ALRubinger/aileron/internal/hostport"
	"github.com/ALRubinger/aileron/spec"
)

// operationCall is a call of one operation by name. It leads to [Decide] and [Plane.Do], as a request on the wire does.
type operationCall struct {
	*callRequest
	grants *Grants     // that the call is served with
	index  *spec.Index // has the operation, and decides about the call's request; nil: that of grants

	// within denies what a further boundary does not allow, of an operation that the index has, before its request is
	// decided; nil: there is no further one.
	within func(*spec.Operation, spec.Target) *Denial

	fields map[string]any // of the call's audit rows; nil: none
}

// do runs the operation of an invocation. What it denies has been recorded. The caller closes the response's body, and
// does not use the exchange after that.
func (c *operationCall) do(in spec.Invocation) (*Exchange, *http.Response, *Denial) {
	if c.index == nil {
		c.index = c.grants.Index
	}
	op, ok := c.index.Operation(in.Connector, in.Tool, in.Operation)
	if !ok {
		return nil, nil, c.reject(nil, c.fields, denyUnknownOperation(c.index, in))
	}
	call, err := op.Call(in)
	if err != nil {
		return nil, nil, c.reject(op, c.fields, deny(reasonArguments, "%v", err))
	}
	x := c.exchange(call)
	x.decided(c.decide(x, op, call.Target))
	res, d := c.p.Do(x)
	return x, res, d
}

// decide returns the decision about the call's request, as about any other. The operation that it is must be the one
// that was named: an argument that makes it another's is no way to that.
func (c *operationCall) decide(x *Exchange, op *spec.Operation, t spec.Target) Decision {
	d := c.judge(x, op, t)
	other := d.Match.Operation
	if other != nil && other != op || d.Verdict == Allow && other == nil || d.Verdict != Allow && d.Denial == nil {
		d = denied(deny(reasonNotMatched, "the request is another than one of %s %s", op.Tool, op.Name))
		if other != nil {
			d.Denial.Granted = []string{operationWord(other)}
		}
	}
	if d.Match.Operation == nil {
		d.Match.Operation = op
		d.Target.Path = plainPath(x.request.RequestURI)
	}
	return d
}

// judge returns the decision of the call's boundaries.
func (c *operationCall) judge(x *Exchange, op *spec.Operation, t spec.Target) Decision {
	if c.within != nil {
		if d := c.within(op, t); d != nil {
			return denied(d)
		}
	}
	question := x.question(x.request)
	question.Index = c.index
	return Decide(question)
}

// callQuestion returns what Decide is asked about the request of a call.
func callQuestion(index *spec.Index, call spec.Call) Question {
	t := call.Target
	a := hostport.Authority{Host: t.Host, Port: t.Port}
	target := t.Path
	if t.Query != "" {
		target += "?" + t.Query
	}
	return Question{Index: index, Authority: a, Scheme: t.Scheme, Method: t.Method, Target: target,
		Host: a.HostHeader(t.Scheme), Body: call.Body != nil}
}

// exchange begins the exchange of the request that the call makes.
func (c *operationCall) exchange(call spec.Call) *Exchange {
	t := call.Target
	a := hostport.Authority{Host: t.Host, Port: t.Port}
	target := t.Path
	if t.Query != "" {
		target += "?" + t.Query
	}
	r := (&http.Request{
		Method: t.Method, URL: &url.URL{Path: t.Path}, RequestURI: target, Host: a.HostHeader(t.Scheme),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Body: http.NoBody,
		Header: http.Header{"Accept": {"application/json, */*;q=0.5"}, "User-Agent": {"aileron"}},
	}).WithContext(c.r.Context())
	if call.Body != nil {
		r.Header.Set("Content-Type", "application/json")
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(call.Body)), int64(len(call.Body))
	}
	x := c.p.newExchange(c.listener, c.source, a, t.Scheme, r)
	x.grants = c.grants
	for name, value := range c.fields {
		x.setField(name, value)
	}
	return x
}

// operationWord returns an operation as an entry of granted.
func operationWord(op *spec.Operation) string { return "operation:" + op.String() }

// denyUnknownOperation returns the denial of an invocation of an unknown operation. It lists the operations of the same
// tool, or of the same connector.
func denyUnknownOperation(index *spec.Index, in spec.Invocation) *Denial {
	const most = 32
	d := deny(reasonNotMatched, "no installed connector has this operation")
	var ofTool, ofConnector, tools []string
	for _, c := range index.Connectors() {
		for _, t := range c.Tools {
			tools = append(tools, "tool:"+string(c.FQN)+" "+t.Name)
			for _, op := range t.Operations {
				if string(c.FQN) != in.Connector {
					continue
				}
				ofConnector = append(ofConnector, operationWord(op))
				if t.Name == in.Tool {
					ofTool = append(ofTool, operationWord(op))
				}
			}
		}
	}
	for _, list := range [][]string{ofTool, ofConnector, tools} {
		if len(list) > 0 {
			d.Granted = list[:min(len(list), most)]
			break
		}
	}
	return d
}
