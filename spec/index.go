package spec

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
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

// Reasons of a NoMatch.
const (
	ReasonHost      = "host_not_allowed"
	ReasonOperation = "operation_not_matched"
	ReasonQuery     = "query_not_declared"
)

// NoMatch is a decision to refuse, with its reason.
type NoMatch struct {
	Reason    string
	Requested string
	Granted   []string // what would be allowed, at most 32 entries
	message   string
}

func (n *NoMatch) Error() string { return n.message }

const maxGranted = 32

// Index finds a request's operation. It is immutable. Finding costs the
// length of the path, however many operations there are.
type Index struct {
	connectors []*Connector
	exact      map[string]*tree // "host:port"
	wildcard   map[string]*tree // "parent:port", for any one label before parent
}

// tree holds the operations of one host pattern by path segment.
type tree struct {
	root     branch
	ops      []*Operation
	carriers map[FQN]bool // connectors that use a credential here
}

type branch struct {
	literal map[string]*branch
	any     *branch
	here    map[string][]*Operation // by method, "*" for any; the path ends here
	rest    map[string][]*Operation // the path goes on, at least one more segment
	all     map[string][]*Operation // only at the root: every path
}

// NewIndex combines connectors. Two operations of different connectors that
// can be the same request with different credentials are an error that names
// both.
func NewIndex(connectors []*Connector) (*Index, error) {
	ix := &Index{connectors: slices.Clone(connectors), exact: map[string]*tree{}, wildcard: map[string]*tree{}}
	for _, c := range connectors {
		for _, t := range c.Tools {
			for _, op := range t.Operations {
				for _, h := range op.Hosts {
					ix.tree(h).add(op)
				}
			}
		}
	}
	if err := ix.conflict(); err != nil {
		return nil, err
	}
	return ix, nil
}

func key(host string, port uint16) string { return host + ":" + strconv.Itoa(int(port)) }

func (ix *Index) tree(h HostPattern) *tree {
	in := ix.exact
	if h.Wildcard {
		in = ix.wildcard
	}
	k := key(h.Name, h.Port)
	if in[k] == nil {
		in[k] = &tree{carriers: map[FQN]bool{}}
	}
	return in[k]
}

func (t *tree) add(op *Operation) {
	t.ops = append(t.ops, op)
	if op.Injection != nil {
		t.carriers[op.Connector.FQN] = true
	}
	method := first(op.Method, "*")
	put := func(m *map[string][]*Operation) {
		if *m == nil {
			*m = map[string][]*Operation{}
		}
		// Credentialed first, then the order of the connectors: a tie is
		// decided the same way every time.
		list := append((*m)[method], op)
		slices.SortStableFunc(list, func(a, b *Operation) int { return rank(a) - rank(b) })
		(*m)[method] = list
	}
	b := &t.root
	if op.Path.IsZero() {
		put(&b.all)
		return
	}
	for _, s := range op.Path.segments {
		switch {
		case s.rest:
			put(&b.rest)
			return
		case s.name != "":
			if b.any == nil {
				b.any = &branch{}
			}
			b = b.any
		default:
			if b.literal == nil {
				b.literal = map[string]*branch{}
			}
			if b.literal[s.literal] == nil {
				b.literal[s.literal] = &branch{}
			}
			b = b.literal[s.literal]
		}
	}
	put(&b.here)
}

func rank(op *Operation) int {
	if op.Injection != nil {
		return 0
	}
	return 1
}

// trees are the host's own tree and its parent's wildcard tree, those that
// are there, in the order in which they are asked.
func (ix *Index) trees(host string, port uint16) []*tree {
	var found []*tree
	if t := ix.exact[key(host, port)]; t != nil {
		found = append(found, t)
	}
	if _, parent, ok := strings.Cut(host, "."); ok {
		if t := ix.wildcard[key(parent, port)]; t != nil {
			found = append(found, t)
		}
	}
	return found
}

// Covers reports whether some operation names the host and port.
func (ix *Index) Covers(host string, port uint16) bool { return len(ix.trees(host, port)) > 0 }

// Match finds the operation that t is: literal segments win over variables,
// variables over the rest, a method over any, an exact host over a wildcard.
func (ix *Index) Match(t Target) (Match, *NoMatch) {
	trees := ix.trees(t.Host, t.Port)
	if len(trees) == 0 {
		return Match{}, ix.noHost(t)
	}
	parts := strings.Split(strings.TrimPrefix(t.Path, "/"), "/")
	for _, tr := range trees {
		steps := maxSteps
		if op := tr.root.find(parts, t.Method, &steps); op != nil {
			return ix.MatchOperation(op, t)
		}
		if op := pick(tr.root.all, t.Method); op != nil {
			return ix.MatchOperation(op, t)
		}
	}
	return Match{}, noOperation(t, trees)
}

// maxSteps bounds the backtracking of one search; over it there is no match.
const maxSteps = 4096

func (b *branch) find(parts []string, method string, steps *int) *Operation {
	if *steps--; *steps < 0 {
		return nil
	}
	if len(parts) == 0 {
		return pick(b.here, method)
	}
	if next := b.literal[parts[0]]; next != nil {
		if op := next.find(parts[1:], method, steps); op != nil {
			return op
		}
	}
	if b.any != nil && isValue(parts[0]) {
		if op := b.any.find(parts[1:], method, steps); op != nil {
			return op
		}
	}
	return pick(b.rest, method)
}

func pick(by map[string][]*Operation, method string) *Operation {
	if ops := by[method]; len(ops) > 0 {
		return ops[0]
	}
	if ops := by["*"]; len(ops) > 0 {
		return ops[0]
	}
	return nil
}

// MatchOperation asks whether t is inside one operation.
func (ix *Index) MatchOperation(op *Operation, t Target) (Match, *NoMatch) {
	if !slices.ContainsFunc(op.Hosts, func(h HostPattern) bool { return h.covers(t.Host, t.Port) }) {
		return Match{}, ix.noHost(t)
	}
	if t.Scheme == "http" && (op.Injection != nil || t.Port == 443) {
		return Match{}, noOperation(t, ix.trees(t.Host, t.Port))
	}
	params, ok := op.Path.match(t.Path)
	if !ok || op.Method != "" && op.Method != "*" && op.Method != t.Method {
		return Match{}, noOperation(t, ix.trees(t.Host, t.Port))
	}
	if op.QueryDeclaredOnly {
		if name, ok := op.undeclared(t.Query); !ok {
			var granted []string
			for _, in := range op.Inputs {
				granted = append(granted, "query:"+in.Name)
			}
			return Match{}, &NoMatch{Reason: ReasonQuery, Requested: "query:" + name, Granted: bounded(granted),
				message: fmt.Sprintf("%s %s does not declare the query name %s", op.Tool, op.Name, quote(name))}
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

// undeclared gives the first query name that is neither an input nor the
// credential's slot, which the proxy empties.
func (op *Operation) undeclared(query string) (string, bool) {
	if query == "" {
		return "", true
	}
	for pair := range strings.SplitSeq(query, "&") {
		raw, _, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(raw)
		if err != nil || hasControl(name) {
			return "?", false
		}
		if op.Injection != nil && op.Injection.In == "query" && op.Injection.Name == name {
			continue
		}
		if !slices.ContainsFunc(op.Inputs, func(in Input) bool { return in.Name == name }) {
			return name[:min(len(name), 100)], false
		}
	}
	return "", true
}

func (ix *Index) noHost(t Target) *NoMatch {
	var granted []string
	for _, h := range ix.Hosts() {
		granted = append(granted, "network:"+h)
	}
	where := key(t.Host, t.Port)
	return &NoMatch{Reason: ReasonHost, Requested: "network:" + where, Granted: bounded(granted),
		message: "the host " + where + " is not allowed: no installed connector names it"}
}

func noOperation(t Target, trees []*tree) *NoMatch {
	var granted []string
	for _, tr := range trees {
		for _, op := range tr.ops {
			if len(granted) == maxGranted {
				break
			}
			granted = append(granted, fmt.Sprintf("operation:%s %s%s", first(op.Method, "*"), t.Host, first(op.Path.String(), "/{path...}")))
		}
	}
	return &NoMatch{Reason: ReasonOperation, Requested: fmt.Sprintf("operation:%s %s%s", t.Method, t.Host, t.Path), Granted: bounded(granted),
		message: fmt.Sprintf("%s %s is not allowed on %s: no operation of an installed connector is that request", t.Method, t.Path, key(t.Host, t.Port))}
}

func bounded(list []string) []string {
	slices.Sort(list)
	list = slices.Compact(list)
	return list[:min(len(list), maxGranted)]
}

// Hosts are all named hosts, as "host:port", sorted.
func (ix *Index) Hosts() []string {
	hosts := slices.Collect(maps.Keys(ix.exact))
	for k := range ix.wildcard {
		hosts = append(hosts, "*."+k)
	}
	slices.Sort(hosts)
	return hosts
}

// Operation finds an operation by its names.
func (ix *Index) Operation(fqn, tool, name string) (*Operation, bool) {
	for _, c := range ix.connectors {
		if string(c.FQN) != fqn {
			continue
		}
		for _, t := range c.Tools {
			for _, op := range t.Operations {
				if t.Name == tool && op.Name == name {
					return op, true
				}
			}
		}
	}
	return nil, false
}

// Connectors are the connectors of the index, in their order.
func (ix *Index) Connectors() []*Connector { return slices.Clone(ix.connectors) }
