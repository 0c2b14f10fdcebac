package api

import (
	"bytes"
	"io"
	"net/http"

	"github.com/ALRubinger/aileron/proxy"
	"github.com/ALRubinger/aileron/proxy/wire"
	"github.com/ALRubinger/aileron/spec"
)

// requestsPath is the endpoint that takes a whole request, and the name of the operation that it is.
const requestsPath = "/v1/sandbox-proxy/requests"

// runRequest responds to a request that carries another one. The carried request is parsed as strictly as one on the
// wire, and served as if it had come in a tunnel to its host; it must be the operation that is named.
func (c *call) runRequest() (*http.Response, *proxy.Denial) {
	in, d := read(c, spec.ParseRequest)
	if d != nil {
		return nil, d
	}
	x, res, d := (&operationCall{call: c, grants: c.plane.Grants()}).forward(in)
	if d != nil {
		return nil, d
	}
	return c.respond(x, res, "")
}

// forward sends the request that names an operation. What it denies has been recorded. It is otherwise like do.
func (c *operationCall) forward(in spec.Request) (*proxy.Exchange, *http.Response, *proxy.Denial) {
	op, ok := c.grants.Index.Operation(in.Connector, in.Tool, in.Operation)
	if !ok {
		named := spec.Invocation{Connector: in.Connector, Tool: in.Tool, Operation: in.Operation}
		return nil, nil, c.denyUnknown(c.grants.Index, named, c.fields)
	}
	a, scheme, d := proxy.ParseURL(in.URL)
	if d != nil {
		return nil, nil, c.reject(op, nil, d)
	}
	fields := make([]wire.Field, len(in.Fields))
	for i, f := range in.Fields {
		fields[i] = wire.Field{Name: f[0], Value: f[1]}
	}
	r, fault := wire.ParseRequest(c.r.Context(), in.Method, in.URL, a.HostHeader(scheme), fields, int64(len(in.Body)),
		c.plane.Config().Limits.Wire)
	if fault != nil {
		return nil, nil, c.reject(op, nil, proxy.DenyFault(fault))
	}
	if len(in.Body) > 0 {
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(in.Body)), int64(len(in.Body))
	}
	x := c.begin(a, scheme, r)
	x.Decided(c.decide(x, op, spec.Target{}))
	res, d := c.plane.Do(x)
	return x, res, d
}
