package learn

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Request is a request of an audit row.
type Request struct {
	Host    string
	Port    int
	Method  string
	Path    string // escaped, as on the wire
	Row     string // the id of its row
	Refused bool
}

// Operation is the requests that one template of a path covers.
type Operation struct {
	Host     string
	Port     int
	Method   string
	Segments []Segment
	Requests int
	Refused  int      // of Requests
	Rows     []string // ids of the first of them, at most MaxRows

	archive bool // see AnyPath
}

// plainPort is the port of HTTP without TLS.
const plainPort = 80

// AnyPath reports whether the operation is for every path of its host. archive is true if a connector may allow it
// without asking: it is reads of packages in plain HTTP, as apt sends them.
func (op Operation) AnyPath() (is, archive bool) {
	is = len(op.Segments) == 0
	return is, is && op.archive
}

// packages are the ends of names of files of which archives consist.
var packages = []string{".deb", ".udeb", ".ddeb", ".dsc", ".apk", ".rpm", ".xz", ".gz", ".bz2", ".zst"}

func isPackage(path string) bool {
	return slices.ContainsFunc(packages, func(end string) bool { return strings.HasSuffix(path, end) })
}

// Segment is a part of a template.
type Segment struct {
	Literal string // where Kind is Literal
	Kind    Kind   // of the values
	Slash   bool   // a value has an escaped slash
	Name    string // of the variable; unique in its template
}

// Bounds of a tree: a sandbox chooses its paths.
const (
	MaxRows     = 3     // ids of rows that an operation has
	manyReads   = 12    // literals side by side from which they are values of a variable
	manyWrites  = 48    // the same, of requests that write
	maxMethods  = 16    // of one path
	maxKids     = 256   // literals side by side before they are looked at
	maxNodes    = 40000 // in all, and methods of them
	maxCompact  = 16    // times that room is made: each walks the tree
	maxHosts    = 256
	maxSegments = 48
	maxPath     = 4096
)

// Tree is the paths of requests by host. Its zero value is empty.
type Tree struct {
	hosts map[authority]*node
	open  map[authority]map[string]*call // reads that passed whose paths no template can have, by method
	plain map[authority]bool             // of open, those with a path that is none of a package
	nodes int
	// closed is true from when compaction no longer made room, or did so often enough: only what is there is counted.
	closed    bool
	compacted int

	LeftOut int // requests for which there was no room, or whose path no template can have
}

type authority struct {
	host string
	port int
}

// node is a segment of paths that begin alike.
type node struct {
	kids  map[string]*node
	value *node // of all segments that are values
	kind  Kind  // of the values that the node stands for
	slash bool
	full  bool // it had too many kids: further ones are values
	calls map[string]*call
}

type call struct {
	requests, refused int
	rows              []string
}

// IsRead reports whether a method only reads (RFC 9110 section 9.2.1).
func IsRead(method string) bool { return method == "GET" || method == "HEAD" || method == "OPTIONS" }

// Add adds a request. It reports whether there was room for it, and a template can have its path.
func (t *Tree) Add(r Request) bool {
	parts, ok := split(r.Path)
	if ok && escapesNeedlessly(r.Path) {
		ok = IsRead(r.Method) && !r.Refused && t.addOpen(r)
	} else if ok {
		ok = t.add(r, parts)
	}
	if !ok {
		t.LeftOut++
		return false
	}
	return true
}

// split returns the segments of a path that a template can have.
func split(path string) ([]string, bool) {
	if len(path) > maxPath || !strings.HasPrefix(path, "/") {
		return nil, false
	}
	parts := strings.Split(path[1:], "/")
	if len(parts) > maxSegments {
		return nil, false
	}
	for i, p := range parts {
		if p == "" && i < len(parts)-1 || p != "" && !isValue(p, true) {
			return nil, false
		}
	}
	return parts, true
}

// addOpen adds a read of a path that two servers may read differently: the proxy denies it where a template decides,
// but a host may be allowed with all its paths. apt sends such: tool_1.0%7erc1_all.deb. See [Tree.leaveOut].
func (t *Tree) addOpen(r Request) bool {
	at := authority{r.Host, r.Port}
	if t.open[at] == nil {
		if len(t.open) >= maxHosts {
			return false
		}
		if t.open == nil {
			t.open = map[authority]map[string]*call{}
		}
		t.open[authority{strings.Clone(r.Host), r.Port}] = map[string]*call{}
	}
	calls := t.open[at]
	if calls[r.Method] == nil {
		calls[strings.Clone(r.Method)] = &call{}
	}
	calls[r.Method].add(r)
	if !isPackage(r.Path) {
		if t.plain == nil {
			t.plain = map[authority]bool{}
		}
		t.plain[authority{strings.Clone(r.Host), r.Port}] = true
	}
	return true
}

// isArchive reports whether all that no template can have was a read of a package in plain HTTP.
func (t *Tree) isArchive(at authority) bool { return at.port == plainPort && !t.plain[at] }

// add counts a request.
func (c *call) add(r Request) {
	c.requests++
	if r.Refused {
		c.refused++
	}
	if len(c.rows) < MaxRows {
		c.rows = append(c.rows, strings.Clone(r.Row))
	}
}

// addAll counts the requests of another call.
func (c *call) addAll(other *call) {
	c.requests += other.requests
	c.refused += other.refused
	c.rows = append(c.rows, other.rows...)
	slices.Sort(c.rows) // ids begin with their time
	c.rows = c.rows[:min(len(c.rows), MaxRows)]
}

func (t *Tree) add(r Request, parts []string) bool {
	at := authority{r.Host, r.Port}
	n := t.hosts[at]
	if n == nil {
		if len(t.hosts) >= maxHosts {
			return false
		}
		if t.hosts == nil {
			t.hosts = map[authority]*node{}
		}
		n = &node{}
		t.hosts[authority{strings.Clone(r.Host), r.Port}] = n
		t.nodes++
	}
	if t.nodes > maxNodes && !t.closed {
		t.compact()
		t.compacted++
		t.closed = t.nodes > maxNodes*3/4 || t.compacted == maxCompact
	}
	if t.closed {
		return n.count(r, parts)
	}
	for i, p := range parts {
		if kid := n.kids[p]; kid != nil { // then it is a literal here
			n = kid
			continue
		}
		n = t.child(n, p, KindOf(p, parts[:i]), r.Method)
	}
	if n.calls == nil {
		n.calls = map[string]*call{}
	}
	c := n.calls[r.Method]
	if c == nil {
		if len(n.calls) >= maxMethods {
			return false
		}
		t.nodes++
		c = &call{}
		n.calls[strings.Clone(r.Method)] = c
	}
	c.add(r)
	return true
}

// count counts a request that an operation of n covers already, and reports whether there is one.
func (n *node) count(r Request, parts []string) bool {
	for i, p := range parts {
		kid := n.kids[p]
		if kid == nil && p != "" && n.value != nil && (n.value.slash || !hasSlash(p)) &&
			(n.value.kind == Text || n.value.kind == KindOf(p, parts[:i])) {
			kid = n.value
		}
		if kid == nil {
			return false
		}
		n = kid
	}
	c := n.calls[r.Method]
	if c == nil {
		return false
	}
	c.add(r)
	return true
}

// child returns the node of a segment below n, where there is no literal of the text yet.
func (t *Tree) child(n *node, part string, kind Kind, method string) *node {
	if kind == Literal && n.full && n.value != nil && part != "" && IsRead(method) {
		kind = Text
	}
	if kind != Literal {
		if n.value == nil {
			n.value = &node{kind: kind}
			t.nodes++
		}
		n.value.mix(kind, hasSlash(part))
		return n.value
	}
	if n.kids == nil {
		n.kids = map[string]*node{}
	}
	kid := &node{}
	n.kids[strings.Clone(part)] = kid
	t.nodes++
	if len(n.kids) > maxKids && (len(n.kids)-maxKids)%64 == 1 { // it walks the whole tree
		n.generalise(len(n.kids) > 4*maxKids)
		n.full = true
		t.recount()
		if _, is := n.kids[part]; !is {
			return n.value
		}
	}
	return kid
}

// mix makes the node one of values of a further kind.
func (n *node) mix(kind Kind, slash bool) {
	n.slash = n.slash || slash
	if n.kind != kind {
		n.kind = Text
	}
}

// compact makes room.
func (t *Tree) compact() {
	for _, n := range t.hosts {
		n.settle()
	}
	t.recount()
}

func (t *Tree) recount() {
	t.nodes = 0
	for _, n := range t.hosts {
		t.nodes += n.size()
	}
}

func (n *node) size() int {
	sum := 1 + len(n.calls)
	for _, kid := range n.kids {
		sum += kid.size()
	}
	if n.value != nil {
		sum += n.value.size()
	}
	return sum
}

// settle makes variables of literals wherever there are many.
func (n *node) settle() {
	n.generalise(false)
	for _, kid := range n.kids {
		kid.settle()
	}
	if n.value != nil {
		n.value.settle()
	}
}

// generalise makes one variable of literals side by side that are alike and many, of all of them if whole is true, and
// of those that the variable covers already.
func (n *node) generalise(whole bool) {
	alike := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(n.kids)) {
		if name == "" { // the slash at the end
			continue
		}
		as := ""
		if !whole {
			as = n.kids[name].likeness()
		}
		alike[as] = append(alike[as], name)
	}
	for _, as := range slices.Sorted(maps.Keys(alike)) {
		names := alike[as]
		drawn, names := sameLength(names)
		for _, name := range drawn {
			n.absorb(name)
		}
		if len(names) == 0 {
			continue
		}
		many := manyReads
		if !n.kids[names[0]].onlyReads() {
			many = manyWrites
		}
		if len(names) <= many {
			continue
		}
		for _, name := range names {
			n.absorb(name)
		}
	}
	if n.value == nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(n.kids)) {
		if name != "" && n.value.covers(n.kids[name]) {
			n.absorb(name)
		}
	}
}

// sameLength returns those of names side by side that show by each other that they were drawn at random, and the rest.
func sameLength(names []string) (drawn, others []string) {
	byLength := map[int][]string{}
	for _, name := range names {
		byLength[len(name)] = append(byLength[len(name)], name)
	}
	for _, length := range slices.Sorted(maps.Keys(byLength)) {
		if alike := byLength[length]; areDrawn(alike) {
			drawn = append(drawn, alike...)
		} else {
			others = append(others, alike...)
		}
	}
	return drawn, others
}

// likeness is equal for nodes that may be values of one variable: their requests have the same methods, and go on or
// not.
func (n *node) likeness() string {
	text := strings.Join(slices.Sorted(maps.Keys(n.calls)), ",")
	if len(n.kids) > 0 || n.value != nil {
		text += "/"
	}
	if !n.onlyReads() {
		text += "!"
	}
	return text
}

// onlyReads reports whether no request at the node or below it writes.
func (n *node) onlyReads() bool {
	for method := range n.calls {
		if !IsRead(method) {
			return false
		}
	}
	for _, kid := range n.kids {
		if !kid.onlyReads() {
			return false
		}
	}
	return n.value == nil || n.value.onlyReads()
}

// covers reports whether every request of other is one of n.
func (n *node) covers(other *node) bool {
	for method := range other.calls {
		if n.calls[method] == nil {
			return false
		}
	}
	for name, kid := range other.kids {
		mine := n.kids[name]
		if mine == nil && name != "" {
			mine = n.value
		}
		if mine == nil || !mine.covers(kid) {
			return false
		}
	}
	return other.value == nil || n.value != nil && n.value.covers(other.value)
}

// absorb makes a literal one of the values.
func (n *node) absorb(name string) {
	kid := n.kids[name]
	delete(n.kids, name)
	if n.value == nil {
		n.value = &node{kind: Text}
	}
	n.value.mix(Text, false)
	n.value.merge(kid)
}

// merge adds to n what other has.
func (n *node) merge(other *node) {
	for method, c := range other.calls {
		if n.calls == nil {
			n.calls = map[string]*call{}
		}
		mine := n.calls[method]
		if mine == nil {
			n.calls[method] = c
			continue
		}
		mine.addAll(c)
	}
	for name, kid := range other.kids {
		if n.kids == nil {
			n.kids = map[string]*node{}
		}
		if mine := n.kids[name]; mine != nil {
			mine.merge(kid)
		} else {
			n.kids[name] = kid
		}
	}
	n.full = n.full || other.full
	if other.value == nil {
		return
	}
	if n.value == nil {
		n.value = other.value
		return
	}
	n.value.mix(other.value.kind, other.value.slash)
	n.value.merge(other.value)
}

// Operations returns the operations of the requests, in the order of their hosts, paths and methods. One without
// segments is for every path of its host.
func (t *Tree) Operations() (all []Operation) {
	t.compact()
	byHost := func(a, b authority) int { return cmp.Or(cmp.Compare(a.host, b.host), cmp.Compare(a.port, b.port)) }
	for a := range t.open {
		t.leaveOut(a)
	}
	at := slices.AppendSeq(slices.Collect(maps.Keys(t.hosts)), maps.Keys(t.open))
	slices.SortFunc(at, byHost)
	for _, a := range slices.Compact(at) {
		open := map[string]*call{}
		for method, c := range t.open[a] {
			open[method] = &call{}
			open[method].addAll(c)
		}
		var templates []Operation
		if n := t.hosts[a]; n != nil {
			n.list(nil, func(method string, segments []Segment, c *call) {
				if open[method] != nil { // it has every path
					open[method].addAll(c)
					return
				}
				templates = append(templates, operation(a, method, segments, c))
			})
		}
		for _, method := range slices.Sorted(maps.Keys(open)) {
			op := operation(a, method, nil, open[method])
			op.archive = t.isArchive(a)
			all = append(all, op)
		}
		all = append(all, templates...)
	}
	return all
}

// leaveOut leaves out the reads of a host for which it would have to be allowed with every path, unless it has nothing
// else, or is an archive: in plain HTTP, with nothing but reads, all of which passed.
func (t *Tree) leaveOut(at authority) {
	n := t.hosts[at]
	if n == nil || t.isArchive(at) && n.onlyReads() && n.passed() {
		return
	}
	for _, c := range t.open[at] {
		t.LeftOut += c.requests
	}
	delete(t.open, at)
}

// passed reports whether no request at the node or below it was refused.
func (n *node) passed() bool {
	for _, c := range n.calls {
		if c.refused > 0 {
			return false
		}
	}
	for _, kid := range n.kids {
		if !kid.passed() {
			return false
		}
	}
	return n.value == nil || n.value.passed()
}

func operation(at authority, method string, segments []Segment, c *call) Operation {
	return Operation{Host: at.host, Port: at.port, Method: method, Segments: named(segments), Requests: c.requests,
		Refused: c.refused, Rows: c.rows}
}

func (n *node) list(before []Segment, found func(string, []Segment, *call)) {
	for _, method := range slices.Sorted(maps.Keys(n.calls)) {
		found(method, before, n.calls[method])
	}
	for _, name := range slices.Sorted(maps.Keys(n.kids)) {
		n.kids[name].list(append(before[:len(before):len(before)], Segment{Literal: name}), found)
	}
	if v := n.value; v != nil {
		v.list(append(before[:len(before):len(before)], Segment{Kind: v.kind, Slash: v.slash}), found)
	}
}
