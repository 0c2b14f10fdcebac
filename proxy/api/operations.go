package api

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/ALRubinger/aileron/proxy"
	"github.com/ALRubinger/aileron/spec"
)

// OperationList is the response to GET /v1/operations: the operations of a session that have every word of q in their
// names, texts, path or inputs, the closest first; or with name, which is FQN TOOL.OPERATION, those of that name.
type OperationList struct {
	Generation int64 `json:"generation"` // see [proxy.Grants.Generation]
	Total      int   `json:"total"`      // of the operations that match
	Callable   int   `json:"callable"`   // of these, those that can be called by name

	Operations []ListedOperation `json:"operations"` // the first of them
}

// ListedOperation is an operation in an OperationList. Its Inputs are all that a call by name takes.
type ListedOperation struct {
	OperationDescription

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
	maxWords      = 16   // of a q
)

// list responds to a request for operations.
func (a *API) list(r *http.Request) (*http.Response, *proxy.Denial) {
	_, raw, _ := strings.Cut(r.RequestURI, "?")
	query, err := url.ParseQuery(raw)
	if err != nil {
		return nil, proxy.ReasonMalformed.Deny("the query cannot be read")
	}
	limit := defaultListed
	if text := query.Get("limit"); text != "" {
		if limit, err = strconv.Atoi(text); err != nil || limit < 0 || limit > maxListed {
			return nil, proxy.ReasonMalformed.Deny("limit must be a number from 0 to %d", maxListed)
		}
	}
	words := strings.Fields(strings.ToLower(query.Get("q")))
	if len(words) > maxWords {
		return nil, proxy.ReasonMalformed.Deny("q must be at most %d words", maxWords)
	}
	if query.Has("name") {
		return jsonResponse(r, namedOperations(a.plane.Grants(), query.Get("name"), limit)), nil
	}
	return jsonResponse(r, listOperations(a.plane.Grants(), words, limit)), nil
}

// FullName is the name of an operation among all: FQN TOOL.OPERATION.
func (o OperationDescription) FullName() string {
	return o.ConnectorFQN + " " + o.Tool + "." + o.Operation
}

// namedOperations returns the operations of a name: one, unless the dots in the names of two tools make theirs equal.
func namedOperations(g *proxy.Grants, name string, limit int) OperationList {
	fqn, rest, _ := strings.Cut(name, " ")
	var all []found
	for _, c := range g.Index.Connectors() {
		if string(c.FQN) != fqn {
			continue
		}
		for _, t := range c.Tools {
			for _, op := range t.Operations {
				if op.Tool+"."+op.Name == rest {
					all = append(all, found{connector: c, op: op})
				}
			}
		}
	}
	return describeFound(g, all, limit)
}

// found is an operation that a search found.
type found struct {
	connector *spec.Connector
	op        *spec.Operation
	score     int
}

// listOperations returns at most limit operations that have every word, in lower case.
func listOperations(g *proxy.Grants, words []string, limit int) OperationList {
	var all []found
	for _, c := range g.Index.Connectors() {
		for _, t := range c.Tools {
			for _, op := range t.Operations {
				if score, ok := matches(op, t.Description, words); ok {
					all = append(all, found{c, op, score})
				}
			}
		}
	}
	slices.SortStableFunc(all, func(a, b found) int { return cmp.Compare(b.score, a.score) })
	return describeFound(g, all, limit)
}

// describeFound returns the list that counts all, and describes at most limit of them.
func describeFound(g *proxy.Grants, all []found, limit int) OperationList {
	list := OperationList{Generation: g.Generation(), Total: len(all), Operations: []ListedOperation{}}
	for _, f := range all {
		if f.op.Callable() == nil {
			list.Callable++
		}
	}
	inputs := maxDescribedInputs
	for _, f := range all[:min(limit, len(all))] {
		_, bound := g.Bound[f.connector.FQN]
		list.Operations = append(list.Operations, listedOperation(f.connector, f.op, bound, &inputs))
	}
	return list
}

// matches reports whether an operation has every word. The score is higher where more of them are in its name.
func matches(op *spec.Operation, toolText string, words []string) (score int, ok bool) {
	if len(words) == 0 {
		return 0, true
	}
	name := strings.ToLower(op.Tool + "." + op.Name)
	text := strings.ToLower(op.Summary + "\n" + op.Description + "\n" + toolText)
	rest := strings.ToLower(op.Method + " " + op.Path.String() + "\n" + string(op.Connector.FQN))
	for _, in := range op.Inputs {
		rest += "\n" + strings.ToLower(in.Name)
	}
	for _, w := range words {
		switch {
		case strings.Contains(name, w):
			score += 3
		case strings.Contains(text, w):
			score += 2
		case strings.Contains(rest, w):
			score++
		default:
			return 0, false
		}
	}
	return score, true
}

// listedOperation describes an operation as a call by name takes it, and counts its inputs.
func listedOperation(c *spec.Connector, op *spec.Operation, bound bool, inputs *int) ListedOperation {
	callee := *op
	callee.Inputs = op.Arguments()
	return ListedOperation{OperationDescription: describeOperation(c, &callee, bound, inputs), Summary: op.Summary,
		Text: op.Description, Idempotent: op.Idempotent, Callable: op.Callable() == nil}
}
