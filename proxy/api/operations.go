package api

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/ALRubinger/aileron/proxy"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/search"
)

// OperationList is the response to GET /v1/operations: the operations of a session that have every word of q in their
// names, texts, path or inputs, and are of the group, the closest first; or with name, which is FQN TOOL.OPERATION,
// those of that name. limit and offset choose some of them. With groups=true the list has the groups, too.
type OperationList struct {
	Generation int64 `json:"generation"` // see [proxy.Grants.Generation]
	Total      int   `json:"total"`      // of the operations that match
	Callable   int   `json:"callable"`   // of these, those that can be called by name

	Operations []ListedOperation  `json:"operations"`       // the first of them, or those from the request's offset on
	Next       int                `json:"next,omitempty"`   // the offset of those that follow; 0: there are none
	Groups     []GroupDescription `json:"groups,omitempty"` // of all operations, where the request asks for them
}

// GroupDescription is a group of the operations of a tool.
type GroupDescription struct {
	ConnectorFQN string `json:"connector_fqn"`
	Tool         string `json:"tool"`
	Group        string `json:"group"`
	Operations   int    `json:"operations"` // how many
}

// ListedOperation is an operation in an OperationList. Its Inputs are all that a call by name takes.
type ListedOperation struct {
	OperationDescription

	Group      string `json:"group,omitempty"`
	Summary    string `json:"summary,omitempty"`
	Text       string `json:"description,omitempty"`
	Idempotent bool   `json:"idempotent"`
	Callable   bool   `json:"callable"` // by name
}

// listPath is the endpoint that lists operations.
const listPath = "/v1/operations"

const (
	defaultListed = 50   // operations of a list whose request has no limit
	maxListed     = 1000 // operations of any list
	maxOffset     = 1 << 20
	maxGroups     = 2000 // of a list
)

// list responds to a request for operations.
func (a *API) list(r *http.Request) (*http.Response, *proxy.Denial) {
	_, raw, _ := strings.Cut(r.RequestURI, "?")
	query, err := url.ParseQuery(raw)
	if err != nil {
		return nil, proxy.ReasonMalformed.Deny("the query cannot be read")
	}
	limit, d := number(query, "limit", defaultListed, maxListed)
	if d != nil {
		return nil, d
	}
	offset, d := number(query, "offset", 0, maxOffset)
	if d != nil {
		return nil, d
	}
	words, err := search.Words(query.Get("q"))
	if err != nil {
		return nil, proxy.ReasonMalformed.Deny("q: %v; it takes at most %d", err, search.MaxWords)
	}
	leave, d := a.inTurn(r)
	if d != nil {
		return nil, d
	}
	defer leave()
	g := a.plane.Grants()
	if query.Has("name") {
		return listing(r, describeFound(g, namedOperations(g, query.Get("name")), offset, limit))
	}
	q := search.Query{Words: words, Group: query.Get("group"), Tool: query.Get("tool")}
	list := describeFound(g, search.Find(r.Context(), g.Index.Connectors(), q), offset, limit)
	if query.Get("groups") == "true" {
		list.Groups = groupsOf(g)
	}
	return listing(r, list)
}

// number returns a number of a query, from 0 to most, or other if it has none of that name.
func number(query url.Values, name string, other, most int) (int, *proxy.Denial) {
	text := query.Get(name)
	if text == "" {
		return other, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > most {
		return 0, proxy.ReasonMalformed.Deny("%s must be a number from 0 to %d", name, most)
	}
	return n, nil
}

// groupsOf returns the groups of all operations, in the order of the connectors.
func groupsOf(g *proxy.Grants) []GroupDescription {
	list := []GroupDescription{}
	for _, c := range g.Index.Connectors() {
		for _, t := range c.Tools {
			for _, group := range search.Groups(t.Operations) {
				list = append(list, GroupDescription{string(c.FQN), t.Name, group.Name, len(group.Operations)})
			}
		}
	}
	return list[:min(len(list), maxGroups)]
}

// FullName is the name of an operation among all: FQN TOOL.OPERATION.
func (o OperationDescription) FullName() string {
	return o.ConnectorFQN + " " + o.Tool + "." + o.Operation
}

// namedOperations returns the operations of a name: one, unless the dots in the names of two tools make theirs equal.
func namedOperations(g *proxy.Grants, name string) (all []search.Hit) {
	fqn, rest, _ := strings.Cut(name, " ")
	for _, c := range g.Index.Connectors() {
		if string(c.FQN) != fqn {
			continue
		}
		for _, t := range c.Tools {
			for _, op := range t.Operations {
				if op.Tool+"."+op.Name == rest {
					all = append(all, search.Hit{Connector: c, Operation: op})
				}
			}
		}
	}
	return all
}

// describeFound returns the list that counts all hits, and describes at most limit of them, from offset on.
func describeFound(g *proxy.Grants, all []search.Hit, offset, limit int) OperationList {
	list := OperationList{Generation: g.Generation(), Total: len(all), Operations: []ListedOperation{}}
	for _, f := range all {
		if f.Operation.Callable() == nil {
			list.Callable++
		}
	}
	inputs, schemas := maxDescribedInputs, maxDescribedSchemas
	page := all[min(offset, len(all)):]
	page = page[:min(limit, len(page))]
	if end := offset + len(page); limit > 0 && end < len(all) {
		list.Next = end
	}
	for _, f := range page {
		_, bound := g.Bound[f.Connector.FQN]
		op := listedOperation(f.Connector, f.Operation, bound, &inputs)
		schemas = op.addSchemas(f.Operation.Arguments(), schemas)
		list.Operations = append(list.Operations, op)
	}
	return list
}

// maxDescribedSchemas bounds the schemas of a list, in bytes. Those beyond are left out.
const maxDescribedSchemas = 4 << 20

// addSchemas adds the schemas of inputs that have at most left bytes, and returns what is left.
func (o *ListedOperation) addSchemas(inputs []spec.Input, left int) int {
	for i := range o.Inputs {
		if inputs[i].Schema == nil || left <= 0 {
			continue
		}
		if text, err := json.Marshal(inputs[i].Schema); err == nil && len(text) <= left {
			o.Inputs[i].Schema = text
			left -= len(text)
		}
	}
	return left
}

// listedOperation describes an operation as a call by name takes it, and counts its inputs.
func listedOperation(c *spec.Connector, op *spec.Operation, bound bool, inputs *int) ListedOperation {
	callee := *op
	callee.Inputs = op.Arguments()
	return ListedOperation{OperationDescription: describeOperation(c, &callee, bound, inputs), Group: op.Group,
		Summary: op.Summary, Text: op.Description, Idempotent: op.Idempotent, Callable: op.Callable() == nil}
}
