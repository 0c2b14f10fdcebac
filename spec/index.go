package spec

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/ALRubinger/aileron/spec/internal/plain"
)

// Index finds the operation that a request is. It is immutable and safe for
// concurrent use. The cost of a search depends on the length of the path, not
// on the number of operations.
type Index struct {
	connectors []*Connector
	exact      map[string]*tree // "host:port"
	wildcard   map[string]*tree // "parent:port", for any one label before parent
	byHand     map[string]*tree // as wildcard, for hosts that nothing else names: see tree
	hosts      []string         // all of them, sorted
	byName     map[operationName]*Operation
}

// Equal reports whether both are indexes of the same documents, or nil.
func (ix *Index) Equal(other *Index) bool {
	if ix == nil || other == nil {
		return ix == other
	}
	return slices.EqualFunc(ix.connectors, other.connectors, func(a, b *Connector) bool {
		return a == b || a.FQN == b.FQN && a.Hash == b.Hash && a.manifest != nil &&
			bytes.Equal(a.manifest, b.manifest) && bytes.Equal(a.specification, b.specification)
	})
}

// operationName identifies an operation within an index.
type operationName struct{ fqn, tool, name string }

// NewIndex returns the index of all operations of the connectors. It returns an
// error that names both if two operations of different connectors can be the
// same request with different credentials.
func NewIndex(connectors []*Connector) (*Index, error) {
	operations := 0
	for _, c := range connectors {
		for _, t := range c.Tools {
			operations += len(t.Operations)
		}
	}
	ix := &Index{
		connectors: slices.Clone(connectors),
		exact:      map[string]*tree{},
		wildcard:   map[string]*tree{},
		byHand:     map[string]*tree{},
		byName:     make(map[operationName]*Operation, operations),
	}
	for _, c := range connectors {
		for _, t := range c.Tools {
			for _, op := range t.Operations {
				ix.byName[operationName{string(c.FQN), t.Name, op.Name}] = op
				for _, h := range op.Hosts {
					ix.tree(h, c.FQN.IsLocal() && op.Injection == nil).add(op)
				}
			}
		}
	}
	ix.hosts = slices.Collect(maps.Keys(ix.exact))
	for _, wildcards := range []map[string]*tree{ix.wildcard, ix.byHand} {
		for k := range wildcards {
			ix.hosts = append(ix.hosts, "*."+k)
		}
	}
	slices.Sort(ix.hosts)
	ix.hosts = slices.Compact(ix.hosts)
	if err := ix.checkConflicts(); err != nil {
		return nil, err
	}
	return ix, nil
}

func hostPort(host string, port uint16) string { return host + ":" + strconv.Itoa(int(port)) }

// tree returns the tree of the host pattern, which it creates if there is none.
// A wildcard that a person allows by hand, as it is, is of no account for a host
// that a connector names: to allow *.example.org does not take the decision about
// api.example.org from the connector that has it, now or when it is installed.
func (ix *Index) tree(h HostPattern, byHand bool) *tree {
	in := ix.exact
	switch {
	case h.Wildcard && byHand:
		in = ix.byHand
	case h.Wildcard:
		in = ix.wildcard
	}
	k := hostPort(h.Name, h.Port)
	if in[k] == nil {
		in[k] = &tree{credentialed: map[FQN]bool{}}
	}
	return in[k]
}

// trees returns the tree of the host itself and that of the wildcard of its
// parent in the order in which they are searched, each nil if there is none.
func (ix *Index) trees(host string, port uint16) (found [2]*tree) {
	found[0] = lookUp(ix.exact, host, port)
	if label, parent, ok := strings.Cut(host, "."); ok && label != "" {
		found[1] = lookUp(ix.wildcard, parent, port)
		if found == [2]*tree{} && len(ix.byHand) > 0 {
			found[1] = lookUp(ix.byHand, parent, port)
		}
	}
	return found
}

// lookUp returns the tree of a host, nil if there is none. It runs for each request.
func lookUp(in map[string]*tree, host string, port uint16) *tree {
	var room [256 + len(":65535")]byte
	key := append(append(room[:0], host...), ':')
	return in[string(strconv.AppendUint(key, uint64(port), 10))]
}

// Covers reports whether some operation names the host and port.
func (ix *Index) Covers(host string, port uint16) bool { return ix.trees(host, port) != [2]*tree{} }

// HasRepositories reports whether some operation allows repositories of git on the host, over HTTPS.
func (ix *Index) HasRepositories(host string) bool {
	for _, c := range ix.connectors {
		for _, t := range c.Tools {
			for _, op := range t.Operations {
				covers := func(h HostPattern) bool { return h.Covers(host, 443) }
				if op.IsRepository() && slices.ContainsFunc(op.Hosts, covers) {
					return true
				}
			}
		}
	}
	return false
}

// IsOpen reports whether nothing is decided by the path or the query of a request
// to the host and port, and no credential can go there: no operation names it, or
// those that do declare neither a path nor a credential nor inputs. Whatever a
// server makes of such a target, it is what it would be without this one.
func (ix *Index) IsOpen(host string, port uint16) bool {
	for _, t := range ix.trees(host, port) {
		if t != nil && t.reads {
			return false
		}
	}
	return true
}

// JudgesBodies reports whether an operation judges the bodies of requests to the host and port.
func (ix *Index) JudgesBodies(host string, port uint16) bool {
	for _, t := range ix.trees(host, port) {
		if t != nil && t.judges {
			return true
		}
	}
	return false
}

// BelongsToMCP reports whether a session of MCP on the host and port is one of a connector that judges its messages,
// and c is none of these. c may be nil.
func (ix *Index) BelongsToMCP(c *Connector, host string, port uint16) bool {
	var all []*Connector
	for _, t := range ix.trees(host, port) {
		if t != nil {
			all = append(all, t.mcp...)
		}
	}
	return len(all) > 0 && !slices.Contains(all, c)
}

// Hosts returns all named hosts as "host:port", sorted.
func (ix *Index) Hosts() []string { return slices.Clone(ix.hosts) }

// Operation returns the operation of that name.
func (ix *Index) Operation(fqn, tool, name string) (*Operation, bool) {
	op, ok := ix.byName[operationName{fqn, tool, name}]
	return op, ok
}

// Connectors returns the connectors of the index, in their order.
func (ix *Index) Connectors() []*Connector { return slices.Clone(ix.connectors) }

// tree holds the operations of one host pattern by path segment.
type tree struct {
	root         branch
	credentialed map[FQN]bool // connectors that use a credential here
	judges       bool         // an operation here judges bodies
	mcp          []*Connector // that judge messages of MCP here
	reads        bool         // an operation here decides by a request's target, or has a credential
}

// branch is a node of a tree. Lists and names are in the order of the connectors,
// so that every walk through a tree is deterministic.
type branch struct {
	literal  map[string]*branch
	names    []string  // the keys of literal, as they came
	affixed  []affixed // the variables with text around, as they take precedence
	variable *branch
	here     slots // the path ends here
	bare     slots // the path ends here, and could have a slash more
	rest     slots // the path goes on, at least one more segment
	all      slots // only at the root: every path
}

// affixed is the branch of a variable with text around it.
type affixed struct {
	plain.Affix
	*branch
}

// slots holds the operations of one template by method, "*" for any. Those with a
// credential come first, and of equal ones those that judge bodies.
type slots []slot

// slot holds those of one method.
type slot struct {
	method string
	ops    []*Operation
}

func (s *slots) add(op *Operation) {
	method := cmp.Or(op.Method, "*")
	i := slices.IndexFunc(*s, func(o slot) bool { return o.method == method })
	if i < 0 {
		i = len(*s)
		*s = append(*s, slot{method: method})
	}
	list := (*s)[i].ops
	at := slices.IndexFunc(list, func(o *Operation) bool { return o.rank() > op.rank() })
	if at < 0 {
		at = len(list)
	}
	(*s)[i].ops = slices.Insert(list, at, op)
}

// of returns the operations of a method alone.
func (s slots) of(method string) []*Operation {
	for i := range s {
		if s[i].method == method {
			return s[i].ops
		}
	}
	return nil
}

// rank orders operations of one template and method.
func (o *Operation) rank() (rank int) {
	if o.Injection == nil {
		rank = 2
	}
	if !o.JudgesBody() {
		rank++
	}
	return rank
}

// forMethod returns the operations for a method: its own, else those for any.
func (s slots) forMethod(method string) []*Operation {
	if !isMethod(method) { // such as "*", or what only a host allowed as it is takes
		return acceptingMethod(s.of("*"), method)
	}
	if ops := s.of(method); len(ops) > 0 {
		return ops
	}
	return s.of("*")
}

// acceptingMethod returns the operations that accept the method, or nil.
func acceptingMethod(ops []*Operation, method string) []*Operation {
	var taken []*Operation
	for _, op := range ops {
		if op.acceptsMethod(method) {
			taken = append(taken, op)
		}
	}
	return taken
}

func (t *tree) add(op *Operation) {
	if op.Injection != nil {
		t.credentialed[op.Connector.FQN] = true
	}
	t.judges = t.judges || op.JudgesBody()
	if op.MCP != nil && !slices.Contains(t.mcp, op.Connector) {
		t.mcp = append(t.mcp, op.Connector)
	}
	t.reads = t.reads || !op.AnyPath() || op.JudgesBody() || op.QueryDeclaredOnly || len(op.Inputs) > 0 ||
		len(op.Audit) > 0 || op.Approval != "" && op.Approval != "none"
	b := &t.root
	if op.Path.IsZero() {
		b.all.add(op)
		return
	}
	for i, s := range op.Path.Segments() {
		if op.Path.HasOptionalSlash() && i == len(op.Path.Segments())-1 {
			b.bare.add(op)
		}
		switch {
		case s.Rest:
			b.rest.add(op)
			return
		case s.Name != "" && !s.IsAlone():
			b = b.growAffixed(s.Affix())
		case s.Name != "":
			if b.variable == nil {
				b.variable = &branch{}
			}
			b = b.variable
		default:
			b = b.grow(s.Literal)
		}
	}
	b.here.add(op)
}

func (b *branch) grow(literal string) *branch {
	if b.literal == nil {
		b.literal = map[string]*branch{}
	}
	next := b.literal[literal]
	if next == nil {
		next = &branch{}
		b.literal[literal] = next
		b.names = append(b.names, literal)
	}
	return next
}

func (b *branch) growAffixed(a plain.Affix) *branch {
	i, found := slices.BinarySearchFunc(b.affixed, a, func(have affixed, a plain.Affix) int { return have.Compare(a) })
	if !found {
		b.affixed = slices.Insert(b.affixed, i, affixed{a, &branch{}})
	}
	return b.affixed[i].branch
}

// maxSteps bounds the backtracking of one search. Beyond it there is no match.
const maxSteps = 4096

// search is one search in a tree.
type search struct {
	method  string
	slashed string // the path, if it has an escaped slash
	steps   int    // that are left
}

// find returns the operations of the most specific template that covers the
// segments and has the method: a literal before a variable with text around it,
// that with the most text first, before a variable before the rest, and a path
// that ends here before one whose slash is left out.
func (s *search) find(b *branch, parts []string) []*Operation {
	if s.steps--; s.steps < 0 {
		return nil
	}
	if len(parts) == 0 {
		if ops := s.covering(b.here); ops != nil {
			return ops
		}
		return s.covering(b.bare)
	}
	if next := b.literal[parts[0]]; next != nil {
		if ops := s.find(next, parts[1:]); ops != nil {
			return ops
		}
	}
	for _, a := range b.affixed {
		if s.steps--; s.steps < 0 {
			return nil
		}
		if _, ok := a.Value(parts[0]); ok {
			if ops := s.find(a.branch, parts[1:]); ops != nil {
				return ops
			}
		}
	}
	if b.variable != nil && s.isValue(parts[0]) {
		if ops := s.find(b.variable, parts[1:]); ops != nil {
			return ops
		}
	}
	ops := s.covering(b.rest)
	if ops != nil && slices.ContainsFunc(parts, func(p string) bool { return p != "" && !s.isValue(p) }) {
		return nil
	}
	return ops
}

// isValue reports whether a segment may be the value of some variable.
func (s *search) isValue(part string) bool {
	return plain.IsValue(part) || s.slashed != "" && plain.IsSlashed(part)
}

// covering returns the operations of a template with the method. Those whose variables may not have the escaped
// slashes of the path are left out.
func (s *search) covering(at slots) []*Operation {
	ops := at.forMethod(s.method)
	if s.slashed == "" || ops == nil {
		return ops
	}
	var taken []*Operation
	for _, op := range ops {
		if _, ok := op.Path.Match(s.slashed); ok {
			taken = append(taken, op)
		}
	}
	return taken
}

// near returns up to limit operations of any method, those that have the most
// segments in common with the path first. A nil tree has none.
func (t *tree) near(parts []string, limit int) []*Operation {
	if t == nil {
		return nil
	}
	way := []*branch{&t.root}
	for _, p := range parts {
		last := way[len(way)-1]
		next := last.literal[p]
		for _, a := range last.affixed {
			if _, ok := a.Value(p); ok && next == nil {
				next = a.branch
			}
		}
		if next == nil {
			next = last.variable
		}
		if next == nil {
			break
		}
		way = append(way, next)
	}
	var found []*Operation
	for _, b := range slices.Backward(way) {
		b.collect(&found, limit)
	}
	return found
}

// variables returns the branches of variables, those with text around them first.
func (b *branch) variables() []*branch {
	var all []*branch
	for _, a := range b.affixed {
		all = append(all, a.branch)
	}
	if b.variable != nil {
		all = append(all, b.variable)
	}
	return all
}

func (b *branch) collect(found *[]*Operation, limit int) {
	for _, s := range []slots{b.here, b.rest, b.all} {
		for _, method := range s.methods() {
			for _, op := range s.of(method) {
				if len(*found) >= limit {
					return
				}
				if !slices.Contains(*found, op) {
					*found = append(*found, op)
				}
			}
		}
	}
	for _, name := range b.names {
		if len(*found) >= limit {
			return
		}
		b.literal[name].collect(found, limit)
	}
	for _, next := range b.variables() {
		if len(*found) < limit {
			next.collect(found, limit)
		}
	}
}

// methods returns the methods, sorted.
func (s slots) methods() []string {
	if len(s) == 0 {
		return nil
	}
	list := make([]string, 0, len(s))
	for _, o := range s {
		list = append(list, o.method)
	}
	slices.Sort(list)
	return list
}
