package proxy

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/spec"
)

// APIHost is the name under which a sandbox reaches its own session's API. It is
// never resolved.
const APIHost = "aileron.internal"

// api answers a request to the session's own endpoints, the sandbox's view of its
// session. The token opens these and nothing else.
func (p *Plane) api(listener Listener, r *http.Request) *http.Response {
	path, _, _ := strings.Cut(r.RequestURI, "?")
	if i := strings.Index(path, "://"); i >= 0 {
		path = path[i+3:]
		path = path[max(0, strings.IndexByte(path, '/')):]
	}
	if path == "/healthz" || path == "/v1/healthz" {
		if p.draining.Err() != nil {
			return p.rejectAPI(listener, r, deny(reasonDraining, "the session is ending"))
		}
		return jsonResponse(r, map[string]string{"status": "ok"})
	}
	// A web page in the user's browser can reach a loopback port; it cannot
	// leave these out (Fetch standard, section 3.2).
	if r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != "" {
		return p.rejectAPI(listener, r, deny(reasonCrossSite, "the request comes from a web page"))
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "bearer") || !p.isToken(strings.TrimSpace(token)) {
		d := deny(reasonToken, "the API wants this session's token")
		d.status = http.StatusUnauthorized // 407 is a proxy's
		return p.rejectAPI(listener, r, d)
	}
	switch {
	case path == "/v1/session" && r.Method == http.MethodGet:
		return jsonResponse(r, p.Describe())
	case path == "/v1/session":
		return p.rejectAPI(listener, r, deny(reasonMethod, "%s is not what this endpoint answers", r.Method))
	case strings.HasPrefix(path, "/v1/audit"), strings.HasPrefix(path, "/v1/vault"), path == "/v1/session/stop":
		return p.rejectAPI(listener, r, deny(reasonOwnerOnly, "this endpoint is the owner's"))
	}
	return p.rejectAPI(listener, r, deny(reasonNotFound, "there is no such endpoint"))
}

func (p *Plane) rejectAPI(listener Listener, r *http.Request, d *Denial) *http.Response {
	x := p.newExchange(listener, audit.SourceRequestBoundary, Authority{Host: APIHost, Port: 80}, "http", r)
	return x.reject(d).Response(r)
}

// Description is the response to GET /v1/session: what this session is and what
// it allows, never a binding's value.
type Description struct {
	ID         string                 `json:"id"`
	Agent      string                 `json:"agent"`
	Started    time.Time              `json:"started"`
	Egress     string                 `json:"egress"`
	Hosts      []string               `json:"hosts"`
	Tools      []ToolDescription      `json:"tools"`
	Operations []OperationDescription `json:"operations"`
}

// ToolDescription is one tool of one connector.
type ToolDescription struct {
	Name         string   `json:"name"`
	ConnectorFQN string   `json:"connector_fqn"`
	Description  string   `json:"description"`
	Operations   []string `json:"operations"`
}

// OperationDescription is one operation that may be used.
type OperationDescription struct {
	ConnectorFQN string   `json:"connector_fqn"`
	Tool         string   `json:"tool"`
	Operation    string   `json:"operation"`
	Method       string   `json:"method"`
	Path         string   `json:"path"`
	Hosts        []string `json:"hosts"`
	Credential   string   `json:"credential,omitempty"` // its kind
	Bound        bool     `json:"bound"`
}

// Describe returns what the session is and allows at this moment.
func (p *Plane) Describe() Description {
	g := p.grants.Load()
	d := Description{ID: p.cfg.Session, Agent: p.cfg.Agent, Started: p.cfg.Started, Egress: "deny",
		Hosts: append([]string{}, g.Index.Hosts()...), Tools: []ToolDescription{}, Operations: []OperationDescription{}}
	if p.cfg.Passthrough {
		d.Egress = "passthrough"
	}
	for _, c := range g.Index.Connectors() {
		_, bound := g.Bound[c.FQN]
		for _, t := range c.Tools {
			tool := ToolDescription{Name: t.Name, ConnectorFQN: string(c.FQN), Description: t.Description}
			for _, op := range t.Operations {
				tool.Operations = append(tool.Operations, op.Name)
				d.Operations = append(d.Operations, describeOperation(c, op, bound))
			}
			d.Tools = append(d.Tools, tool)
		}
	}
	return d
}

func describeOperation(c *spec.Connector, op *spec.Operation, bound bool) OperationDescription {
	o := OperationDescription{ConnectorFQN: string(c.FQN), Tool: op.Tool, Operation: op.Name,
		Method: op.Method, Path: op.Path.String(), Bound: bound || op.Injection == nil}
	for _, h := range op.Hosts {
		o.Hosts = append(o.Hosts, h.String())
	}
	if op.Injection != nil {
		o.Credential = string(op.Injection.Kind)
	}
	return o
}

func jsonResponse(r *http.Request, v any) *http.Response {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v)
	return &http.Response{
		StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}, "Cache-Control": {"no-store"},
			"Content-Length": {strconv.Itoa(out.Len())}},
		Body: io.NopCloser(&out), ContentLength: int64(out.Len()),
	}
}
