package proxy

import (
	"bytes"
	"errors"
	"io"
	"net/http"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/panics"
	"github.com/ALRubinger/aileron/proxy/budget"
	"github.com/ALRubinger/aileron/spec"
)

// operationsPath is the endpoint that runs an operation by name, as a connector's command does.
const operationsPath = "/v1/connector-operations/run"

// invocationReads is how many invocations are parsed at a time: the values of one take many times its own size, for a
// moment.
const invocationReads = 2

// callRequest is a request to an endpoint that calls operations.
type callRequest struct {
	p        *Plane
	listener Listener
	r        *http.Request
	source   audit.Source // of the rows
	form     string       // of the response: see formOf
	hold     *budget.Hold // of the request's body, and of what the response needs
}

// serveCall responds to a request to an endpoint that calls operations with what run returns. What run denies must have
// been recorded.
func (p *Plane) serveCall(listener Listener, r *http.Request, source audit.Source,
	run func(*callRequest) (*http.Response, *Denial)) (res *http.Response) {
	c := &callRequest{p: p, listener: listener, r: r, source: source, form: formOf(r), hold: p.budget.Conn().Hold(nil)}
	defer func() {
		if recover() != nil {
			panics.Log(p.cfg.Log, "a call of an operation")
			c.hold.Release()
			res = c.reject(nil, nil, deny(reasonPanic, "aileron failed while it served this request")).Response(r)
		}
	}()
	res, d := run(c)
	if d != nil {
		c.hold.Release()
		return d.Response(r)
	}
	return res
}

// runOperation responds to a request that names an operation and its arguments. A call is denied for the same reason
// as the request that it makes would be on the wire.
func (p *Plane) runOperation(listener Listener, r *http.Request) *http.Response {
	return p.serveCall(listener, r, audit.SourceConnectorShim, func(c *callRequest) (*http.Response, *Denial) {
		var in spec.Invocation
		d := c.read(func(body []byte) (err error) {
			in, err = spec.ParseInvocation(body)
			return err
		})
		if d != nil {
			return nil, c.reject(nil, nil, d)
		}
		x, res, d := (&operationCall{callRequest: c, grants: p.grants.Load()}).do(in)
		if d != nil {
			return nil, d
		}
		return c.respond(x, res, "")
	})
}

// read reads the request's body and parses it. An error of parse must not have a value of an argument.
func (c *callRequest) read(parse func(body []byte) error) *Denial {
	const piece = 64 << 10
	var body bytes.Buffer
	for {
		if !c.hold.Take(piece) {
			return denyMemory()
		}
		n, err := io.CopyN(&body, c.r.Body, piece)
		switch {
		case body.Len() > spec.MaxSize:
			return deny(reasonTooLarge, "the call has more than %d bytes", spec.MaxSize)
		case errors.Is(err, io.EOF) && n < piece:
			return c.parse(body.Bytes(), parse)
		case err != nil:
			return denyBody(err)
		}
	}
}

func (c *callRequest) parse(body []byte, parse func([]byte) error) *Denial {
	select {
	case c.p.invocations <- struct{}{}:
		defer func() { <-c.p.invocations }()
	case <-c.r.Context().Done():
		return deny(reasonClientGone, "the client went away")
	}
	if err := parse(body); err != nil {
		return deny(reasonArguments, "%v", err)
	}
	return nil
}

// reject records a denial of a call that makes no request. op is nil if no operation was found.
func (c *callRequest) reject(op *spec.Operation, fields map[string]any, d *Denial) *Denial {
	x := c.p.newExchange(c.listener, c.source, Authority{Host: APIHost, Port: 80}, "http", c.r)
	x.row.Event = audit.EventOperationRejected
	for name, value := range fields {
		x.setField(name, value)
	}
	if op != nil {
		x.row.ConnectorFQN, x.row.ConnectorVersion = string(op.Connector.FQN), op.Connector.Version
		x.row.Tool, x.row.Operation = op.Tool, op.Name
	}
	return x.reject(d)
}
