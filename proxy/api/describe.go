package api

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/ALRubinger/aileron/proxy"
	"github.com/ALRubinger/aileron/spec"
)

// Description is the response to GET /v1/session: what this session is and what
// it allows, never a binding's value.
type Description struct {
	ID         string                 `json:"id"`
	Agent      string                 `json:"agent"`
	Started    time.Time              `json:"started"`
	Egress     string                 `json:"egress"`
	Generation int64                  `json:"generation"` // see [proxy.Grants.Generation]
	Hosts      []string               `json:"hosts"`
	Connectors []ConnectorDescription `json:"connectors"`
	Tools      []ToolDescription      `json:"tools"`
	Operations []OperationDescription `json:"operations"`
	Actions    []ActionDescription    `json:"actions"`
}

// ConnectorDescription is a connector in the version that is in force.
type ConnectorDescription struct {
	FQN     string `json:"fqn"`
	Version string `json:"version"`
	Hash    string `json:"hash,omitempty"` // of its content
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
	Asks         string   `json:"asks,omitempty"` // when it waits for the user's approval: always, or when …

	Inputs        []InputDescription `json:"inputs,omitempty"`
	InputsOmitted int                `json:"inputs_omitted,omitempty"` // how many more there are
}

// InputDescription is one argument of an operation, or of an action.
type InputDescription struct {
	Name        string   `json:"name"`
	Type        string   `json:"type,omitempty"` // "": any
	In          string   `json:"in,omitempty"`   // "" for an action
	Required    bool     `json:"required"`
	Description string   `json:"description,omitempty"`
	Values      []string `json:"values,omitempty"`

	// Schema is what nests in it, as JSON Schema. Only GET /v1/operations has it.
	Schema json.RawMessage `json:"schema,omitempty"`
}

// maxDescribedInputs bounds the inputs of a description, which are counted beyond that.
const maxDescribedInputs = 5000

// describe responds with what the session is and allows.
func (a *API) describe(r *http.Request) (*http.Response, *proxy.Denial) {
	leave, d := a.inTurn(r)
	if d != nil {
		return nil, d
	}
	defer leave()
	return listing(r, Describe(a.plane))
}

// Describe returns what a session is and allows at this moment.
func Describe(p *proxy.Plane) Description {
	g, cfg := p.Grants(), p.Config()
	d := Description{ID: cfg.Session, Agent: cfg.Agent, Started: cfg.Started, Egress: "deny",
		Generation: g.Generation(), Hosts: append([]string{}, g.Index.Hosts()...), Tools: []ToolDescription{},
		Operations: []OperationDescription{},
		Connectors: []ConnectorDescription{}}
	if cfg.Passthrough {
		d.Egress = "passthrough"
	}
	inputs := maxDescribedInputs
	for _, c := range g.Index.Connectors() {
		d.Connectors = append(d.Connectors, ConnectorDescription{FQN: string(c.FQN), Version: c.Version, Hash: c.Hash})
		_, bound := g.Bound[c.FQN]
		for _, t := range c.Tools {
			tool := ToolDescription{Name: t.Name, ConnectorFQN: string(c.FQN), Description: t.Description}
			for _, op := range t.Operations {
				tool.Operations = append(tool.Operations, op.Name)
				d.Operations = append(d.Operations, describeOperation(c, op, bound, &inputs))
			}
			d.Tools = append(d.Tools, tool)
		}
	}
	d.Actions = describeActions(g)
	return d
}

// describeOperation describes an operation with at most so many inputs, and counts them.
func describeOperation(c *spec.Connector, op *spec.Operation, bound bool, inputs *int) OperationDescription {
	o := OperationDescription{ConnectorFQN: string(c.FQN), Tool: op.Tool, Operation: op.Name,
		Method: op.Method, Path: op.Path.String(), Bound: bound || op.Injection == nil, Asks: op.Asks()}
	for _, h := range op.Hosts {
		o.Hosts = append(o.Hosts, h.String())
	}
	if op.Injection != nil {
		o.Credential = string(op.Injection.Kind)
	}
	listed := op.Inputs[:min(len(op.Inputs), *inputs)]
	*inputs -= len(listed)
	o.InputsOmitted = len(op.Inputs) - len(listed)
	for _, in := range listed {
		o.Inputs = append(o.Inputs, InputDescription{Name: in.Name, Type: in.Type, In: in.In, Required: in.Required,
			Description: in.Description, Values: in.Values})
	}
	return o
}
