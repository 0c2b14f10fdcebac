package spec

import (
	"net/url"
	"slices"
	"strings"
)

// Target is a request in canonical form, which the proxy has found unambiguous.
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

// Match is the decision to allow a request, with the operation that it is.
type Match struct {
	Operation *Operation
	Params    []Param
}

// Param returns the escaped value of a template variable.
func (m Match) Param(name string) (string, bool) {
	for _, p := range m.Params {
		if p.Name == name {
			return p.Value, true
		}
	}
	return "", false
}

// Match returns the operation that t is, or the reason why it is none. An exact
// host takes precedence over a wildcard, a literal segment over a variable, a
// variable over the rest, a method over any method, an operation with a
// credential over one without, and otherwise the first over the others.
// The template that takes precedence decides: a query that none of its
// operations declares is refused, and never tried on a wider template.
func (ix *Index) Match(t Target) (Match, *NoMatch) {
	trees := ix.trees(t.Host, t.Port)
	if trees == [2]*tree{} {
		return Match{}, ix.noHost(t)
	}
	if !strings.HasPrefix(t.Path, "/") {
		return Match{}, ix.noOperation(t)
	}
	var room [16]string
	parts := appendSegments(room[:0], t.Path)
	for _, tr := range trees {
		if tr == nil {
			continue
		}
		steps := maxSteps
		ops := tr.root.find(parts, t.Method, &steps)
		if ops == nil {
			ops = tr.root.all.forMethod(t.Method)
		}
		if ops != nil {
			return ix.decide(ops, t)
		}
	}
	return Match{}, ix.noOperation(t)
}

// decide returns the first of one template's operations that t is, or the reason
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

// MatchOperation returns a match if t is a request of op, or the reason why it is
// not.
func (ix *Index) MatchOperation(op *Operation, t Target) (Match, *NoMatch) {
	if !slices.ContainsFunc(op.Hosts, func(h HostPattern) bool { return h.covers(t.Host, t.Port) }) {
		return Match{}, ix.noHost(t)
	}
	if t.Scheme != "https" && (op.Injection != nil || t.Port == 443 || t.Scheme != "http") {
		return Match{}, noClear(t)
	}
	params, ok := op.Path.match(t.Path)
	if !ok || !op.acceptsMethod(t.Method) {
		return Match{}, ix.noOperation(t)
	}
	m := Match{Operation: op, Params: params}
	if op.QueryDeclaredOnly {
		if name, ok := op.undeclared(t.Query); !ok {
			return Match{}, noQuery(op, name)
		}
	}
	if in, value := op.badValue(m, t.Query); in != nil {
		return Match{}, noValue(op, in, value, t)
	}
	return m, nil
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

// undeclared returns the first name in the query that is neither an input of the
// query nor the place of the credential, which the proxy empties; ok reports
// that there is none. A query that two servers may split differently (a ';', a
// broken escape) has an undeclared name, "".
func (op *Operation) undeclared(query string) (name string, ok bool) {
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
