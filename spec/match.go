package spec

import (
	"net/url"
	"slices"
	"strings"
)

// Target is a canonical request: what the proxy has judged unambiguous.
type Target struct {
	Scheme string // https or http
	Host   string // lower case
	Port   uint16
	Method string
	Path   string // escaped, exactly as on the wire
	Query  string // raw
}

// Param is a template variable and its escaped value.
type Param struct{ Name, Value string }

// Match is a decision to allow: the operation that a request is.
type Match struct {
	Operation *Operation
	Params    []Param
}

// Param gives a variable's value.
func (m Match) Param(name string) (string, bool) {
	for _, p := range m.Params {
		if p.Name == name {
			return p.Value, true
		}
	}
	return "", false
}

// Match finds the operation that t is. An exact host wins over a wildcard, a
// literal segment over a variable, a variable over the rest, a method over
// any, an operation with a credential over one without, and then the first.
// The template that wins decides: a query that none of its operations
// declares is refused, and never handed down to a wider template.
func (ix *Index) Match(t Target) (Match, *NoMatch) {
	trees := ix.trees(t.Host, t.Port)
	if len(trees) == 0 {
		return Match{}, ix.noHost(t)
	}
	if !strings.HasPrefix(t.Path, "/") {
		return Match{}, ix.noOperation(t)
	}
	parts := strings.Split(t.Path[1:], "/")
	for _, tr := range trees {
		steps := maxSteps
		ops := tr.root.find(parts, t.Method, &steps)
		if ops == nil {
			ops = tr.root.all.of(t.Method)
		}
		if ops != nil {
			return ix.decide(ops, t)
		}
	}
	return Match{}, ix.noOperation(t)
}

// decide takes the first of one template's operations that t is, else says
// why it is not the first one.
func (ix *Index) decide(ops []*Operation, t Target) (Match, *NoMatch) {
	var refused *NoMatch
	for _, op := range ops {
		m, no := ix.MatchOperation(op, t)
		if no == nil {
			return m, nil
		}
		if refused == nil {
			refused = no
		}
	}
	return Match{}, refused
}

// MatchOperation asks whether t is inside one operation.
func (ix *Index) MatchOperation(op *Operation, t Target) (Match, *NoMatch) {
	if !slices.ContainsFunc(op.Hosts, func(h HostPattern) bool { return h.covers(t.Host, t.Port) }) {
		return Match{}, ix.noHost(t)
	}
	if t.Scheme != "https" && (op.Injection != nil || t.Port == 443 || t.Scheme != "http") {
		return Match{}, noClear(t)
	}
	params, ok := op.Path.match(t.Path)
	if !ok || !op.takes(t.Method) {
		return Match{}, ix.noOperation(t)
	}
	if op.QueryDeclaredOnly {
		if name, ok := op.undeclared(t.Query); !ok {
			return Match{}, noQuery(op, name)
		}
	}
	return Match{Operation: op, Params: params}, nil
}

func (h HostPattern) covers(host string, port uint16) bool {
	if h.Port != port {
		return false
	}
	if !h.Wildcard {
		return h.Name == host
	}
	label, parent, ok := strings.Cut(host, ".")
	return ok && label != "" && parent == h.Name
}

// undeclared returns the first query name that is neither an input of the
// query nor the credential's slot, which the proxy empties. What two servers may take apart
// differently (a ';', a broken escape) is undeclared.
func (op *Operation) undeclared(query string) (string, bool) {
	if query == "" {
		return "", true
	}
	for pair := range strings.SplitSeq(query, "&") {
		raw, _, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(raw)
		if err != nil || hasControl(name) || strings.Contains(pair, ";") {
			return "", false
		}
		if op.Injection != nil && op.Injection.In == "query" && op.Injection.Name == name {
			continue
		}
		if op.placeOfInput(name) != InQuery {
			return name, false
		}
	}
	return "", true
}
