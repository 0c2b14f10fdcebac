package spec

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/spec/internal/plain"
	"github.com/ALRubinger/aileron/spec/internal/template"
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

// Match is the decision to allow a request, with the operation that it is. Where that judges bodies, the body decides.
type Match struct {
	Operation *Operation
	Params    []Param
	// Others are the operations that the request may be instead, in their order, if its body is none of Operation's:
	// see [Operation.JudgesBody]. Whether they match, [Index.MatchOperation] decides.
	Others []*Operation
	// Prior are the operations that the request is instead, if its body is one of theirs: those before an Operation that
	// a call names.
	Prior []*Operation
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

// HasEscapedSlash reports whether a variable has an escaped slash in its value, as its operation declares.
func (m Match) HasEscapedSlash() bool {
	return slices.ContainsFunc(m.Params, func(p Param) bool { return plain.HasEscapedSlash(p.Value) })
}

// Match returns the operation that t is, or the reason why it is none. An exact
// host takes precedence over a wildcard, a literal segment over a variable, one
// with text around it over one without, a variable over the rest, a method over any method, an operation with a
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
	ops := operations(trees, t)
	if ops == nil {
		return Match{}, ix.noOperation(t)
	}
	m, no := ix.decide(ops, t)
	if no == nil && m.HasEscapedSlash() {
		no = ix.denySlashed(trees, m.Operation, t)
	}
	if no != nil {
		return Match{}, no
	}
	return m, nil
}

// operations returns those of the template that takes precedence for t, nil if none covers it.
func operations(trees [2]*tree, t Target) []*Operation {
	var room [16]string
	parts := template.AppendSegments(room[:0], t.Path)
	for _, tr := range trees {
		if tr == nil {
			continue
		}
		s := search{method: t.Method, steps: maxSteps}
		if plain.HasEscapedSlash(t.Path) {
			s.slashed = t.Path
		}
		ops := s.find(&tr.root, parts)
		if ops == nil {
			ops = tr.root.all.forMethod(t.Method)
		}
		if ops != nil {
			return ops
		}
	}
	return nil
}

// denySlashed returns why t, a request of op with escaped slashes, is denied, nil if it is not. A server that reads
// them as slashes may find the path of another operation in it, and what that one demands must not be evaded so.
func (ix *Index) denySlashed(trees [2]*tree, op *Operation, t Target) *NoMatch {
	plain := t
	plain.Path = strings.NewReplacer("%2F", "/", "%2f", "/").Replace(t.Path)
	ops := operations(trees, plain)
	if ops == nil {
		return nil
	}
	other, no := ix.decide(ops, plain)
	if no == nil && other.Operation != op &&
		(other.Operation.Approval != op.Approval || op.Approval == ApprovalWhen || other.Operation.JudgesBody()) {
		return ix.noOperation(t)
	}
	return no
}

// decide returns the first of one template's operations that t is, or the reason
// why it is not the first one. What one that judges bodies refuses is none of
// another connector: a session that a server began for the credential of the one
// would be a way to the same tools by the other.
func (ix *Index) decide(ops []*Operation, t Target) (Match, *NoMatch) {
	var refused *NoMatch
	var judging *Connector
	for i, op := range ops {
		if judging != nil && op.Connector != judging {
			continue
		}
		if op.JudgesBody() {
			judging = op.Connector
		}
		m, no := ix.MatchOperation(op, t)
		if no == nil {
			if op.JudgesBody() {
				m.Others = slices.DeleteFunc(slices.Clone(ops[i+1:]), func(o *Operation) bool { return o.Connector != judging })
			}
			return m, nil
		}
		if refused == nil {
			refused = no
		}
		if op.Judges(t) {
			break // it refuses the query or a value, by which its content must not become that of one behind it
		}
	}
	return Match{}, refused
}

// covers reports whether t has a host, the method and the path of the operation.
func (o *Operation) covers(t Target) bool {
	_, ok := o.Path.Match(t.Path)
	return ok && o.acceptsMethod(t.Method) &&
		slices.ContainsFunc(o.Hosts, func(h HostPattern) bool { return h.Covers(t.Host, t.Port) })
}

// Judges reports whether the operation judges the content of t, whatever its query.
func (o *Operation) Judges(t Target) bool { return o.JudgesBody() && o.covers(t) }

// MatchOperation returns a match if t is a request of op, or the reason why it is
// not.
func (ix *Index) MatchOperation(op *Operation, t Target) (Match, *NoMatch) {
	if !slices.ContainsFunc(op.Hosts, func(h HostPattern) bool { return h.Covers(t.Host, t.Port) }) {
		return Match{}, ix.noHost(t)
	}
	if op.Injection != nil && strings.Contains(t.Host, "_") { // that a wildcard covers
		return Match{}, noUnderscore(t)
	}
	if t.Scheme != "https" && (op.Injection != nil || t.Port == 443 || t.Scheme != "http") {
		return Match{}, noClear(t)
	}
	params, ok := op.Path.Match(t.Path)
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
		if err != nil || plain.HasControl(name) || strings.Contains(pair, ";") {
			return "", false
		}
		if op.Injection != nil && op.Injection.In == "query" && op.Injection.Name == name {
			continue
		}
		if !op.DeclaresQuery(name) {
			return name, false
		}
	}
	return "", true
}

// The reasons of a NoMatch.
const (
	ReasonHost      = "host_not_allowed"
	ReasonOperation = "operation_not_matched"
	ReasonQuery     = "query_not_declared"
)

// NoMatch is the decision to deny a request, with its reason.
type NoMatch struct {
	Reason    string
	Requested string
	Granted   []string // what would be allowed, the nearest first, at most 32 entries
	message   string
}

// Error returns a sentence for an agent: what was denied, why, and which allowed
// requests come nearest.
func (n *NoMatch) Error() string { return n.message }

const (
	maxGranted = 32  // entries of Granted
	maxListed  = 5   // entries in the sentence
	maxText    = 200 // bytes of a path or a name in the sentence
)

func (ix *Index) noHost(t Target) *NoMatch {
	var granted []string
	for _, h := range ix.hosts[:min(len(ix.hosts), maxGranted)] {
		granted = append(granted, "network:"+h)
	}
	where := hostPort(t.Host, t.Port)
	message := "the host " + where + " is not allowed: no installed connector names it"
	if len(ix.hosts) > 0 {
		message += "; allowed are " + listed(ix.hosts)
	} else {
		message = "the host " + where + " is not allowed: no connector is installed, so nothing is"
	}
	return &NoMatch{Reason: ReasonHost, Requested: "network:" + where, Granted: granted, message: message}
}

// noUnderscore is why a request with a credential is not sent to a host that a wildcard covers.
func noUnderscore(t Target) *NoMatch {
	where := hostPort(t.Host, t.Port)
	return &NoMatch{Reason: ReasonHost, Requested: "network:" + where, message: "the host " + where +
		" is not allowed: a wildcard covers it, but no certificate is issued for a name with an underscore, and the " +
		"operation has a credential; without one, the user can allow it: aileron allow " + where}
}

func (ix *Index) noOperation(t Target) *NoMatch {
	parts := strings.Split(strings.TrimPrefix(t.Path, "/"), "/")
	var granted, near []string
	for _, tr := range ix.trees(t.Host, t.Port) {
		for _, op := range tr.near(parts, maxGranted) {
			if len(granted) == maxGranted {
				break
			}
			method, path := cmp.Or(op.Method, "*"), cmp.Or(op.Path.String(), "/{path...}")
			if entry := "operation:" + method + " " + t.Host + path; !slices.Contains(granted, entry) {
				granted = append(granted, entry)
				near = append(near, method+" "+path)
			}
		}
	}
	where := hostPort(t.Host, t.Port)
	why := "no operation of an installed connector is that request"
	if !isMethod(t.Method) {
		why = "the method " + badMethod(t.Method) + ", and no operation accepts it"
	}
	message := truncated(t.Method) + " " + truncated(t.Path) + " is not allowed on " + where + ": " + why +
		"; nearest are " + listed(near)
	return &NoMatch{Reason: ReasonOperation, Requested: t.requested(), Granted: granted, message: message}
}

// requested returns the request as the error object of a denial names it.
func (t Target) requested() string { return "operation:" + t.Method + " " + t.Host + t.Path }

// noClear denies a request without TLS for an operation that has a credential or
// a TLS port.
func noClear(t Target) *NoMatch {
	where := hostPort(t.Host, t.Port)
	return &NoMatch{Reason: ReasonOperation, Requested: t.requested(), Granted: []string{"network:" + where},
		message: t.Method + " " + truncated(t.Path) + " is not allowed on " + where + " in clear: use https"}
}

func noQuery(op *Operation, name string) *NoMatch {
	names := op.QueryInputs()
	var granted []string
	for _, in := range names[:min(len(names), maxGranted)] {
		granted = append(granted, "query:"+in)
	}
	message := "the operation " + op.Tool + " " + op.Name + " does not declare the query name " + quote(truncated(name))
	if name == "" {
		name = "?"
		message = "the query cannot be read without doubt (an empty name, a ';' or a broken escape), " +
			"as the operation " + op.Tool + " " + op.Name + " needs"
	}
	if len(names) > 0 {
		message += "; declared are " + listed(names)
	}
	if place := op.placeOfInput(name); place != "" {
		message += "; it is an input of the " + place
	}
	return &NoMatch{Reason: ReasonQuery, Requested: "query:" + truncated(name), Granted: granted, message: message}
}

// noValue denies a request whose input has a value that the operation does not
// declare.
func noValue(op *Operation, in *Input, value string, t Target) *NoMatch {
	no := &NoMatch{Reason: ReasonOperation, Requested: t.requested()}
	if in.In == InQuery {
		no.Reason, no.Requested = ReasonQuery, "query:"+truncated(in.Name+"="+value)
	}
	for _, v := range in.Values[:min(len(in.Values), maxGranted)] {
		no.Granted = append(no.Granted, in.In+":"+in.Name+"="+v)
	}
	no.message = "the operation " + op.Tool + " " + op.Name + " does not allow the value " + quote(truncated(value)) +
		" of " + in.Name + "; allowed are " + listed(in.Values)
	// The value is the client's, and the line is for a person's shell.
	if in.In == InPath && op.Injection == nil && plain.IsName(value, ".-") {
		no.message += "; to allow this one, the user runs aileron allow ID --path '" + op.Path.With(in.Name, value) +
			"', with the audit id of this denial"
	}
	return no
}

// listed returns the first few entries as one text.
func listed(list []string) string {
	s := strings.Join(list[:min(len(list), maxListed)], ", ")
	if len(list) > maxListed {
		s += ", …"
	}
	return s
}

func truncated(s string) string {
	if len(s) > maxText {
		return s[:maxText] + "…"
	}
	return s
}

// Naming returns the connector to which a denied request is attributed, or nil if
// no connector names t's host. Of several it is the connector of the operation
// whose path is nearest to t's, and of equally near ones that of t's method.
// For a port that none of them names, and without a path, it is the first by
// FQN. The receiver may be nil, which names none: a denial is recorded even if
// there is no index.
func (ix *Index) Naming(t Target) *Connector {
	if ix == nil {
		return nil
	}
	if t.Path != "" {
		parts := strings.Split(strings.TrimPrefix(t.Path, "/"), "/")
		for _, tr := range ix.trees(t.Host, t.Port) {
			if near := tr.near(parts, maxGranted); len(near) > 0 {
				return ofMethod(near, t.Method).Connector
			}
		}
	}
	var first, elsewhere *Connector
	for _, c := range ix.connectors {
		if c.names(t.Host, t.Port) && (first == nil || c.FQN < first.FQN) {
			first = c
		}
		if c.names(t.Host, 0) && (elsewhere == nil || c.FQN < elsewhere.FQN) {
			elsewhere = c
		}
	}
	if first != nil {
		return first
	}
	return elsewhere
}

// ofMethod returns the first operation with the path of near[0] that has the
// method, else near[0].
func ofMethod(near []*Operation, method string) *Operation {
	i := slices.IndexFunc(near, func(op *Operation) bool {
		return op.Path.String() == near[0].Path.String() && (op.Method == method || op.Method == "*" || op.Method == "")
	})
	return near[max(i, 0)]
}

// names reports whether an operation of c names host and port; port 0 is any.
func (c *Connector) names(host string, port uint16) bool {
	covers := func(h HostPattern) bool { return h.Covers(host, port) || port == 0 && h.Covers(host, h.Port) }
	return slices.ContainsFunc(c.Tools, func(t Tool) bool {
		return slices.ContainsFunc(t.Operations, func(op *Operation) bool { return slices.ContainsFunc(op.Hosts, covers) })
	})
}
