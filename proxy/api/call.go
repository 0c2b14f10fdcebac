package api

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/hostport"
	"github.com/ALRubinger/aileron/internal/panics"
	"github.com/ALRubinger/aileron/proxy"
	"github.com/ALRubinger/aileron/proxy/budget"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/search"
)

// operationsPath is the endpoint that runs an operation by name, as a connector's command does.
const operationsPath = "/v1/connector-operations/run"

// invocationReads is how many invocations are parsed at a time: the values of one take many times its own size, for a
// moment.
const invocationReads = 2

// call is a request to an endpoint that calls operations.
type call struct {
	api    *API
	plane  *proxy.Plane
	client Client
	r      *http.Request
	source audit.Source // of the rows
	form   string       // of the response: see formOf
	hold   *budget.Hold // of the request's body, and of what the response needs
}

// serveCall responds to a request to an endpoint that calls operations with what run returns. What run denies must have
// been recorded.
func (a *API) serveCall(client Client, r *http.Request, source audit.Source,
	run func(*call) (*http.Response, *proxy.Denial)) (res *http.Response) {
	c := &call{api: a, plane: a.plane, client: client, r: r, source: source, form: formOf(r),
		hold: a.plane.Budget().Conn().Hold(nil)}
	defer func() {
		if recover() != nil {
			panics.Log(a.plane.Config().Log, "a call of an operation")
			c.hold.Release()
			d := c.reject(nil, nil, proxy.ReasonPanic.Deny("aileron failed while it served this request"))
			res = denialInForm(c.form, r, d)
		}
	}()
	res, d := run(c)
	if d != nil {
		c.hold.Release()
		return denialInForm(c.form, r, d)
	}
	return res
}

// runOperation responds to a request that names an operation and its arguments. A call is denied for the same reason
// as the request that it makes would be on the wire.
func (c *call) runOperation() (*http.Response, *proxy.Denial) {
	if isUpload(c.r.Header.Get("Content-Type")) {
		return c.runUpload()
	}
	in, d := read(c, spec.ParseInvocation)
	if d != nil {
		return nil, d
	}
	x, res, d := (&operationCall{call: c, grants: c.plane.Grants(), fields: surfaceFields(c.r)}).do(in)
	if d != nil {
		return nil, d
	}
	return c.respond(x, res, "")
}

// read reads the request's body and parses it. An error of parse must not have a value of an argument. A denial has
// been recorded.
func read[T any](c *call, parse func(body []byte) (T, error)) (in T, _ *proxy.Denial) {
	d := c.read(func(body []byte) (err error) {
		in, err = parse(body)
		return err
	})
	if d != nil {
		d = c.reject(nil, surfaceFields(c.r), d)
	}
	return in, d
}

func (c *call) read(parse func(body []byte) error) *proxy.Denial {
	const piece = 64 << 10
	var body bytes.Buffer
	for {
		if !c.hold.Take(piece) {
			return proxy.DenyMemory()
		}
		n, err := io.CopyN(&body, c.r.Body, piece)
		switch {
		case body.Len() > spec.MaxSize:
			return proxy.ReasonTooLarge.Deny("the call has more than %d bytes", spec.MaxSize)
		case errors.Is(err, io.EOF) && n < piece:
			return c.parse(body.Bytes(), parse)
		case err != nil:
			return proxy.DenyBody(err)
		}
	}
}

func (c *call) parse(body []byte, parse func([]byte) error) *proxy.Denial {
	select {
	case c.api.invocations <- struct{}{}:
		defer func() { <-c.api.invocations }()
	case <-c.r.Context().Done():
		return proxy.ReasonClientGone.Deny("the client went away")
	}
	if err := parse(body); err != nil {
		return proxy.ReasonArguments.Deny("%v", err)
	}
	return nil
}

// reject records a denial of a call that makes no request. op is nil if no operation was found.
func (c *call) reject(op *spec.Operation, fields map[string]any, d *proxy.Denial) *proxy.Denial {
	return c.rejectOf(nil, op, fields, d)
}

// rejectOf is reject with the connector that the call is of, although it has no such operation. of is nil if there is
// none.
func (c *call) rejectOf(of *spec.Connector, op *spec.Operation, fields map[string]any, d *proxy.Denial) *proxy.Denial {
	at := c.client.Arrival()
	at.Source = c.source
	x := c.plane.Begin(at, c.r)
	x.Calls(of, op)
	for name, value := range fields {
		x.SetField(name, value)
	}
	return x.Reject(d)
}

// operationCall is a call of one operation by name. It leads to [Decide] and [Plane.Do], as a request on the wire does.
type operationCall struct {
	*call
	grants *proxy.Grants // that the call is served with

	// within denies what a further boundary does not allow, before the request is decided; nil: there is no further one.
	within func(spec.Target) *proxy.Denial

	fields map[string]any // of the call's audit rows; nil: none
	files  io.Reader      // that follow the call; nil: none do
}

// do runs the operation of an invocation. What it denies has been recorded. The caller closes the response's body, and
// does not use the exchange after that.
func (c *operationCall) do(in spec.Invocation) (*proxy.Exchange, *http.Response, *proxy.Denial) {
	op, ok := c.grants.Index.Operation(in.Connector, in.Tool, in.Operation)
	if !ok {
		return nil, nil, c.denyUnknown(c.grants.Index, in, c.fields)
	}
	if d := c.readTexts(op, &in); d != nil {
		return nil, nil, c.reject(op, c.fields, d)
	}
	call, err := op.Call(in)
	if err != nil {
		return nil, nil, c.reject(op, c.fields, proxy.ReasonArguments.Deny("%v", err))
	}
	if d := c.denyLong(call.Streamed); d != nil {
		return nil, nil, c.reject(op, c.fields, d)
	}
	x := c.exchange(call)
	x.Decided(c.decide(x, op, call.Target))
	res, d := c.plane.Do(x)
	return x, res, d
}

// decide returns the decision about the call's request, as about any other. The operation that it is must be the one
// that was named: an argument that makes it another's is no way to that.
func (c *operationCall) decide(x *proxy.Exchange, op *spec.Operation, t spec.Target) proxy.Decision {
	d := c.judge(x, t)
	d.Named(c.grants.Index, op)
	other := d.Match.Operation
	allowed := d.Verdict == proxy.Allow
	if other != nil && other != op || allowed && other == nil || !allowed && d.Denial == nil {
		d = proxy.Denied(proxy.ReasonNotMatched.Deny("the request is another than one of %s %s", op.Tool, op.Name))
		if other != nil {
			d.Denial.Granted = []string{operationWord(other)}
		}
	}
	if other == nil {
		d.Target.Path = "" // it may be none; the row has the plain beginning of it
	}
	if d.Match.Operation == nil {
		d.Match.Operation = op
	}
	return d
}

// judge returns the decision of the call's boundaries.
func (c *operationCall) judge(x *proxy.Exchange, t spec.Target) proxy.Decision {
	if c.within != nil {
		if d := c.within(t); d != nil {
			return proxy.Denied(d)
		}
	}
	return proxy.Decide(x.Question())
}

// callQuestion returns what Decide is asked about the request of a call.
func callQuestion(index *spec.Index, call spec.Call) proxy.Question {
	t := call.Target
	a := hostport.Authority{Host: t.Host, Port: t.Port}
	target := t.Path
	if t.Query != "" {
		target += "?" + t.Query
	}
	return proxy.Question{Index: index, Authority: a, Scheme: t.Scheme, Method: t.Method, Target: target,
		Host: a.HostHeader(t.Scheme), Body: call.Body != nil || call.Streamed != nil, Approvals: true} // the step itself asks
}

// exchange begins the exchange of the request that the call makes.
func (c *operationCall) exchange(call spec.Call) *proxy.Exchange {
	a, r := proxy.RequestOf(c.r.Context(), call, c.files)
	x := c.begin(a, call.Target.Scheme, r)
	for name, value := range c.fields {
		x.SetField(name, value)
	}
	return x
}

// begin begins the exchange of a request that the call makes.
func (c *operationCall) begin(a proxy.Authority, scheme string, r *http.Request) *proxy.Exchange {
	at := proxy.Arrival{Source: c.source, Redirected: c.client.Redirected, Authority: a, Scheme: scheme}
	return c.plane.Begin(at, r).Under(c.grants)
}

// operationWord returns an operation as an entry of granted.
func operationWord(op *spec.Operation) string { return "operation:" + op.String() }

// denyUnknown denies an invocation of an unknown operation, and records that.
func (c *call) denyUnknown(index *spec.Index, in spec.Invocation, fields map[string]any) *proxy.Denial {
	of, d := c.unknown(index, in)
	return c.rejectOf(of, nil, fields, d)
}

// unknown is unknownOperation in its turn among all listings: it looks for names that resemble the one of in.
func (c *call) unknown(index *spec.Index, in spec.Invocation) (*spec.Connector, *proxy.Denial) {
	leave, d := c.api.inTurn(c.r)
	if d != nil {
		return nil, d
	}
	defer leave()
	return unknownOperation(c.r.Context(), index, in)
}

// unknownOperation returns the denial of an invocation of an unknown operation, and the connector that it names, nil if
// that is not installed. The denial lists operations of the connector: those of the tool whose names resemble the one
// that was asked for, else all of the tool, or of the connector.
func unknownOperation(ctx context.Context, index *spec.Index, in spec.Invocation) (of *spec.Connector,
	d *proxy.Denial,
) {
	const most = 32
	var ofTool, ofConnector, tools []string
	for _, installed := range index.Connectors() {
		if string(installed.FQN) == in.Connector {
			of = installed
		}
		for _, t := range installed.Tools {
			tools = append(tools, "tool:"+string(installed.FQN)+" "+t.Name)
			for _, op := range t.Operations {
				if installed != of {
					continue
				}
				ofConnector = append(ofConnector, operationWord(op))
				if t.Name == in.Tool {
					ofTool = append(ofTool, operationWord(op))
				}
			}
		}
	}
	if of == nil {
		d = proxy.ReasonNotMatched.Deny("no installed connector has this operation")
	} else {
		d = proxy.ReasonNotMatched.Deny("%s %s has no such operation: GET /v1/operations?q=WORD finds one", of.FQN,
			of.Version)
	}
	for _, list := range [][]string{resembling(ctx, of, in), ofTool, ofConnector, tools} {
		if len(list) > 0 {
			d.Granted = list[:min(len(list), most)]
			break
		}
	}
	return of, d
}

// resembling returns the operations of the connector's tool that have all parts of the name that was asked for.
func resembling(ctx context.Context, of *spec.Connector, in spec.Invocation) (list []string) {
	parts := strings.FieldsFunc(in.Operation, func(c rune) bool { return strings.ContainsRune("._:-/ ", c) })
	words, err := search.Words(parts...)
	if of == nil || err != nil || len(words) == 0 {
		return nil
	}
	for _, h := range search.Find(ctx, []*spec.Connector{of}, search.Query{Words: words, Tool: in.Tool}) {
		list = append(list, operationWord(h.Operation))
	}
	return list
}
