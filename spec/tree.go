package spec

import (
	"cmp"
	"slices"
)

// tree holds the operations of one host pattern by path segment.
type tree struct {
	root         branch
	credentialed map[FQN]bool // connectors that use a credential here
}

// branch is a node of a tree. Lists and names are in the order of the connectors,
// so that every walk through a tree is deterministic.
type branch struct {
	literal  map[string]*branch
	names    []string // the keys of literal, as they came
	variable *branch
	here     slots // the path ends here
	rest     slots // the path goes on, at least one more segment
	all      slots // only at the root: every path
}

// slots holds the operations of one template by method, "*" for any. Those with a
// credential come first.
type slots map[string][]*Operation

func (s *slots) add(op *Operation) {
	if *s == nil {
		*s = slots{}
	}
	method := cmp.Or(op.Method, "*")
	list := (*s)[method]
	at := len(list)
	if op.Injection != nil {
		at = slices.IndexFunc(list, func(o *Operation) bool { return o.Injection == nil })
		if at < 0 {
			at = len(list)
		}
	}
	(*s)[method] = slices.Insert(list, at, op)
}

// forMethod returns the operations for a method: its own, else those for any.
func (s slots) forMethod(method string) []*Operation {
	if !isMethod(method) { // such as "*", or what only a host allowed as it is takes
		return acceptingMethod(s["*"], method)
	}
	if ops := s[method]; len(ops) > 0 {
		return ops
	}
	return s["*"]
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
	b := &t.root
	if op.Path.IsZero() {
		b.all.add(op)
		return
	}
	for _, s := range op.Path.segments {
		switch {
		case s.rest:
			b.rest.add(op)
			return
		case s.name != "":
			if b.variable == nil {
				b.variable = &branch{}
			}
			b = b.variable
		default:
			b = b.grow(s.literal)
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

// maxSteps bounds the backtracking of one search. Beyond it there is no match.
const maxSteps = 4096

// find returns the operations of the most specific template that covers the
// segments and has the method: a literal before a variable before the rest.
func (b *branch) find(parts []string, method string, steps *int) []*Operation {
	if *steps--; *steps < 0 {
		return nil
	}
	if len(parts) == 0 {
		return b.here.forMethod(method)
	}
	if next := b.literal[parts[0]]; next != nil {
		if ops := next.find(parts[1:], method, steps); ops != nil {
			return ops
		}
	}
	if b.variable != nil && isValue(parts[0]) {
		if ops := b.variable.find(parts[1:], method, steps); ops != nil {
			return ops
		}
	}
	ops := b.rest.forMethod(method)
	if ops != nil && slices.ContainsFunc(parts, func(p string) bool { return p != "" && !isValue(p) }) {
		return nil
	}
	return ops
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

func (b *branch) collect(found *[]*Operation, limit int) {
	for _, s := range []slots{b.here, b.rest, b.all} {
		for _, method := range s.methods() {
			for _, op := range s[method] {
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
	if b.variable != nil && len(*found) < limit {
		b.variable.collect(found, limit)
	}
}

// methods returns the keys, sorted.
func (s slots) methods() []string {
	if len(s) == 0 {
		return nil
	}
	list := make([]string, 0, len(s))
	for m := range s {
		list = append(list, m)
	}
	slices.Sort(list)
	return list
}
