package spec

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// checkConflicts returns an error if two credentialed operations of different
// connectors can be the same request. It visits only hosts on which at least
// two connectors use a credential. There it walks two trees side by side, so
// that the cost is that of what they have in common.
func (ix *Index) checkConflicts() error {
	s := conflictSearch{budget: maxPairs, summaries: map[*branch]*summary{}}
	for _, host := range slices.Sorted(maps.Keys(ix.exact)) {
		t := ix.exact[host]
		if err := s.checkTrees(host, t, t); err != nil {
			return err
		}
		if _, parent, ok := strings.Cut(host, "."); ok && ix.wildcard[parent] != nil {
			if err := s.checkTrees(host, t, ix.wildcard[parent]); err != nil {
				return err
			}
		}
	}
	for _, parent := range slices.Sorted(maps.Keys(ix.wildcard)) {
		if err := s.checkTrees("*."+parent, ix.wildcard[parent], ix.wildcard[parent]); err != nil {
			return err
		}
	}
	return nil
}

// maxPairs bounds the pairs of branches that a search visits. Connectors that
// need more cannot be shown to be unambiguous, and are refused.
const maxPairs = 2 << 20

// conflictSearch is the state of one search for conflicting operations.
type conflictSearch struct {
	budget    int // pairs of branches that may still be visited; negative: exhausted
	summaries map[*branch]*summary
}

// checkTrees returns an error if a request to host can be an operation of a and
// one of b with different credentials.
func (s *conflictSearch) checkTrees(host string, a, b *tree) error {
	credentialed := maps.Clone(a.credentialed)
	maps.Copy(credentialed, b.credentialed)
	if len(credentialed) < 2 || len(a.credentialed) == 0 || len(b.credentialed) == 0 {
		return nil
	}
	x, y := s.findConflict(&a.root, &b.root)
	switch {
	case x != nil:
		return fmt.Errorf("the operations %q (%s %s) and %q (%s %s) can be the same request on %s "+
			"and use different credentials",
			x, cmp.Or(x.Method, "*"), x.Path, y, cmp.Or(y.Method, "*"), y.Path, host)
	case s.budget < 0:
		return fmt.Errorf("the operations of %s on %s are too entangled to show that no two of them "+
			"are the same request with different credentials",
			joined(slices.Sorted(maps.Keys(credentialed))), host)
	}
	return nil
}

// summary is what the operations of a branch claim.
type summary struct {
	here  claimSet // paths that end at the branch
	rest  claimSet // every path that continues below it
	below claimSet // paths that end below it, rest included
	total claimSet // all of them
}

// summarize returns the summary of b, which it computes once.
func (s *conflictSearch) summarize(b *branch) *summary {
	if sum := s.summaries[b]; sum != nil {
		return sum
	}
	sum := &summary{
		here: unionOf(credentialedClaims(b.here), credentialedClaims(b.bare)),
		rest: credentialedClaims(b.rest),
	}
	sum.below = sum.rest
	for _, name := range b.names {
		sum.below = unionOf(sum.below, s.summarize(b.literal[name]).total)
	}
	for _, next := range b.variables() {
		sum.below = unionOf(sum.below, s.summarize(next).total)
	}
	sum.total = unionOf(sum.here, sum.below)
	s.summaries[b] = sum
	return sum
}

// findConflict returns conflicting operations at or below two branches that one
// path can reach, or nil if there are none or the budget is exhausted. Branches
// whose totals do not conflict have no conflict below them either.
func (s *conflictSearch) findConflict(a, b *branch) (*Operation, *Operation) {
	if s.budget--; s.budget < 0 {
		return nil, nil
	}
	sumA, sumB := s.summarize(a), s.summarize(b)
	if x, _ := conflictingOperations(sumA.total, sumB.total); x == nil {
		return nil, nil
	}
	for _, c := range [][2]claimSet{{sumA.here, sumB.here}, {sumA.rest, sumB.below}, {sumA.below, sumB.rest}} {
		if x, y := conflictingOperations(c[0], c[1]); x != nil {
			return x, y
		}
	}
	if x, y := s.literalPairs(a, b); x != nil || s.budget < 0 {
		return x, y
	}
	if x, y := s.variablePair(a, b); x != nil || s.budget < 0 {
		return x, y
	}
	if x, y := s.affixedPairs(a, b); x != nil || s.budget < 0 || a == b {
		return x, y
	}
	return s.affixedPairs(b, a)
}

// literalPairs searches below the literal segments that both branches have.
func (s *conflictSearch) literalPairs(a, b *branch) (*Operation, *Operation) {
	few, many := a, b
	if len(b.names) < len(a.names) {
		few, many = b, a
	}
	for _, name := range few.names {
		if next := many.literal[name]; next != nil {
			if x, y := s.findConflict(few.literal[name], next); x != nil || s.budget < 0 {
				return x, y
			}
		}
	}
	return nil, nil
}

// variablePair searches below the variables of both branches.
func (s *conflictSearch) variablePair(a, b *branch) (*Operation, *Operation) {
	if a.variable == nil || b.variable == nil {
		return nil, nil
	}
	return s.findConflict(a.variable, b.variable)
}

// affixedPairs searches below what the variables of a, with and without text around them, have in common with literal
// segments and the variables with text of b.
func (s *conflictSearch) affixedPairs(a, b *branch) (*Operation, *Operation) {
	for _, one := range a.affixed {
		for _, name := range b.names {
			if s.budget--; s.budget < 0 {
				return nil, nil
			}
			if _, ok := one.Value(name); !ok {
				continue
			}
			if x, y := s.findConflict(one.branch, b.literal[name]); x != nil || s.budget < 0 {
				return x, y
			}
		}
		for _, other := range b.affixed {
			if s.budget--; s.budget < 0 {
				return nil, nil
			}
			if !one.Overlaps(other.Affix) {
				continue
			}
			if x, y := s.findConflict(one.branch, other.branch); x != nil || s.budget < 0 {
				return x, y
			}
		}
	}
	return s.wildcardPairs(a, b)
}

// wildcardPairs searches below the variable of a and each literal segment and variable with text of b.
func (s *conflictSearch) wildcardPairs(a, b *branch) (*Operation, *Operation) {
	if a.variable == nil {
		return nil, nil
	}
	for _, name := range b.names {
		if name == "" {
			continue // a variable takes at least one byte
		}
		if x, y := s.findConflict(a.variable, b.literal[name]); x != nil || s.budget < 0 {
			return x, y
		}
	}
	for _, other := range b.affixed {
		if x, y := s.findConflict(a.variable, other.branch); x != nil || s.budget < 0 {
			return x, y
		}
	}
	return nil, nil
}

// claimSet holds credentialed operations by method, and under "" those of any
// method. Of each it has up to two of different connectors, which is all that
// a conflict needs.
type claimSet map[string][2]*Operation

func (c claimSet) add(method string, op *Operation) {
	pair := c[method]
	switch {
	case pair[0] == nil:
		pair[0] = op
	case pair[1] == nil && pair[0].Connector.FQN != op.Connector.FQN:
		pair[1] = op
	default:
		return
	}
	c[method] = pair
}

// unionOf returns the union of both sets. It changes neither; the result may be
// one of them.
func unionOf(a, b claimSet) claimSet {
	if len(a) == 0 {
		return b
	}
	if a.includes(b) {
		return a
	}
	both := maps.Clone(a)
	for _, method := range slices.Sorted(maps.Keys(b)) {
		for _, op := range b[method] {
			if op != nil {
				both.add(method, op)
			}
		}
	}
	return both
}

// includes reports whether adding b to c would change nothing.
func (c claimSet) includes(b claimSet) bool {
	for method, pair := range b {
		own := c[method]
		switch {
		case own[0] == nil:
			return false
		case own[1] != nil: // full
		case pair[1] != nil || pair[0].Connector.FQN != own[0].Connector.FQN:
			return false
		}
	}
	return true
}

// credentialedClaims returns the operations of one template that have a
// credential.
func credentialedClaims(s slots) claimSet {
	var c claimSet
	for _, method := range s.methods() {
		for _, op := range s.of(method) {
			if op.Injection == nil {
				break // those with a credential come first
			}
			if c == nil {
				c = claimSet{}
			}
			c.add(method, op)
			c.add("", op)
		}
	}
	return c
}

// conflictingOperations returns an operation of each set that have a method in
// common and are of different connectors, or nil if there are none.
func conflictingOperations(a, b claimSet) (*Operation, *Operation) {
	if len(a) == 0 || len(b) == 0 {
		return nil, nil
	}
	if x, y := ofTwoConnectors(a["*"], b[""]); x != nil {
		return x, y
	}
	if x, y := ofTwoConnectors(a[""], b["*"]); x != nil {
		return x, y
	}
	few, many, swapped := a, b, false
	if len(b) < len(a) {
		few, many, swapped = b, a, true
	}
	for _, method := range slices.Sorted(maps.Keys(few)) {
		if method == "" {
			continue
		}
		x, y := ofTwoConnectors(few[method], many[method])
		if swapped {
			x, y = y, x
		}
		if x != nil {
			return x, y
		}
	}
	return nil, nil
}

// ofTwoConnectors returns an operation of each pair that are of different
// connectors, or nil if there are none.
func ofTwoConnectors(a, b [2]*Operation) (*Operation, *Operation) {
	for _, x := range a {
		for _, y := range b {
			if x != nil && y != nil && x.Connector.FQN != y.Connector.FQN {
				return x, y
			}
		}
	}
	return nil, nil
}
