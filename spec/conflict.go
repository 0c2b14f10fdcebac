package spec

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// conflict looks for two credentialed operations of different connectors that
// can be the same request. Only hosts on which at least two connectors use a
// credential are looked at, so that the usual case costs nothing.
func (ix *Index) conflict() error {
	for _, k := range slices.Sorted(maps.Keys(ix.exact)) {
		t := ix.exact[k]
		against := []*tree{t}
		if _, parent, ok := strings.Cut(k, "."); ok && ix.wildcard[parent] != nil {
			against = append(against, ix.wildcard[parent])
		}
		if err := clash(t, against); err != nil {
			return err
		}
	}
	for _, k := range slices.Sorted(maps.Keys(ix.wildcard)) {
		if err := clash(ix.wildcard[k], []*tree{ix.wildcard[k]}); err != nil {
			return err
		}
	}
	return nil
}

func clash(t *tree, against []*tree) error {
	carriers := map[FQN]bool{}
	for _, other := range against {
		maps.Copy(carriers, other.carriers)
	}
	if len(carriers) < 2 {
		return nil
	}
	for _, op := range t.ops {
		if op.Injection == nil {
			continue
		}
		for _, other := range against {
			if o := other.root.overlap(op.Path.segments, op); o != nil {
				return fmt.Errorf("the operations %q and %q can be the same request (%s %s) and use different credentials",
					op, o, first(op.Method, "*"), op.Path)
			}
		}
	}
	return nil
}

// overlap finds an operation below b that can share a request with op, whose
// remaining segments are given. A credentialed operation always has a path.
func (b *branch) overlap(segments []segment, op *Operation) *Operation {
	if len(segments) == 0 {
		return rival(b.here, op)
	}
	if o := rival(b.rest, op); o != nil {
		return o
	}
	s := segments[0]
	if s.rest {
		return b.anywhere(op)
	}
	if b.any != nil {
		if o := b.any.overlap(segments[1:], op); o != nil {
			return o
		}
	}
	if s.name == "" {
		if next := b.literal[s.literal]; next != nil {
			return next.overlap(segments[1:], op)
		}
		return nil
	}
	for _, k := range slices.Sorted(maps.Keys(b.literal)) {
		if o := b.literal[k].overlap(segments[1:], op); o != nil {
			return o
		}
	}
	return nil
}

// anywhere finds a rival strictly below b.
func (b *branch) anywhere(op *Operation) *Operation {
	next := slices.Collect(maps.Values(b.literal))
	if b.any != nil {
		next = append(next, b.any)
	}
	for _, n := range next {
		for _, at := range []map[string][]*Operation{n.here, n.rest} {
			if o := rival(at, op); o != nil {
				return o
			}
		}
		if o := n.anywhere(op); o != nil {
			return o
		}
	}
	return nil
}

func rival(by map[string][]*Operation, op *Operation) *Operation {
	method := first(op.Method, "*")
	for m, list := range by {
		if m != method && m != "*" && method != "*" {
			continue
		}
		for _, o := range list {
			if o.Injection != nil && o.Connector.FQN != op.Connector.FQN {
				return o
			}
		}
	}
	return nil
}
