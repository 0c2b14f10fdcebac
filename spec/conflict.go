package spec

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// conflict looks for two credentialed operations of different connectors that
// can be the same request. Only hosts on which at least two connectors use a
// credential are looked at; there, two trees are walked side by side, so that
// the cost is that of what they share.
func (ix *Index) conflict() error {
	w := walk{budget: maxWalk, sums: map[*branch]*summary{}}
	for _, k := range slices.Sorted(maps.Keys(ix.exact)) {
		t := ix.exact[k]
		if err := w.clash(k, t, t); err != nil {
			return err
		}
		if _, parent, ok := strings.Cut(k, "."); ok && ix.wildcard[parent] != nil {
			if err := w.clash(k, t, ix.wildcard[parent]); err != nil {
				return err
			}
		}
	}
	for _, k := range slices.Sorted(maps.Keys(ix.wildcard)) {
		if err := w.clash("*."+k, ix.wildcard[k], ix.wildcard[k]); err != nil {
			return err
		}
	}
	return nil
}

// maxWalk bounds the pairs of branches that are looked at. Connectors that
// need more cannot be shown to be unambiguous, and are refused.
const maxWalk = 2 << 20

type walk struct {
	budget int
	sums   map[*branch]*summary
}

func (w *walk) clash(host string, a, b *tree) error {
	carriers := maps.Clone(a.carriers)
	maps.Copy(carriers, b.carriers)
	if len(carriers) < 2 || len(a.carriers) == 0 || len(b.carriers) == 0 {
		return nil
	}
	x, y := w.pair(&a.root, &b.root)
	switch {
	case x != nil:
		return fmt.Errorf("the operations %q (%s %s) and %q (%s %s) can be the same request on %s and use different credentials",
			x, first(x.Method, "*"), x.Path, y, first(y.Method, "*"), y.Path, host)
	case w.budget < 0:
		return fmt.Errorf("the operations of %s on %s are too entangled to show that no two of them are the same request with different credentials",
			strings.Join(names(carriers), ", "), host)
	}
	return nil
}

func names(set map[FQN]bool) []string {
	var list []string
	for f := range set {
		list = append(list, string(f))
	}
	slices.Sort(list)
	return list
}

// claims are credentialed operations by method, "" for whatever method: of
// each, up to two of different connectors, which is all that a conflict needs.
type claims map[string][2]*Operation

func (c claims) add(method string, op *Operation) {
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

// union gives both; it changes neither, and may be one of them.
func union(a, b claims) claims {
	if len(a) == 0 || len(b) == 0 {
		if len(a) == 0 {
			return b
		}
		return a
	}
	same := true
	for method, pair := range b {
		have := a[method]
		same = same && have[0] != nil && (have[1] != nil || pair[1] == nil && pair[0].Connector.FQN == have[0].Connector.FQN)
	}
	if same {
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

func claimsOf(s slots) claims {
	var c claims
	for _, method := range s.methods() {
		for _, op := range s[method] {
			if op.Injection == nil {
				break // those with a credential come first
			}
			if c == nil {
				c = claims{}
			}
			c.add(method, op)
			c.add("", op)
		}
	}
	return c
}

// rivals finds an operation of each side that share a method and are of
// different connectors.
func rivals(a, b claims) (*Operation, *Operation) {
	if len(a) == 0 || len(b) == 0 {
		return nil, nil
	}
	if x, y := differ(a["*"], b[""]); x != nil {
		return x, y
	}
	if x, y := differ(a[""], b["*"]); x != nil {
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
		x, y := differ(few[method], many[method])
		if swapped {
			x, y = y, x
		}
		if x != nil {
			return x, y
		}
	}
	return nil, nil
}

func differ(a, b [2]*Operation) (*Operation, *Operation) {
	for _, x := range a {
		for _, y := range b {
			if x != nil && y != nil && x.Connector.FQN != y.Connector.FQN {
				return x, y
			}
		}
	}
	return nil, nil
}

// summary is what a branch claims: at its end, for all that goes on, strictly
// below, and all together.
type summary struct{ here, rest, below, total claims }

func (w *walk) sum(b *branch) *summary {
	if s := w.sums[b]; s != nil {
		return s
	}
	s := &summary{here: claimsOf(b.here), rest: claimsOf(b.rest)}
	s.below = s.rest
	for _, name := range b.names {
		s.below = union(s.below, w.sum(b.literal[name]).total)
	}
	if b.any != nil {
		s.below = union(s.below, w.sum(b.any).total)
	}
	s.total = union(s.here, s.below)
	w.sums[b] = s
	return s
}

// pair finds rivals below two branches that one path can reach. Neither has
// rivals in what their totals do not share.
func (w *walk) pair(a, b *branch) (*Operation, *Operation) {
	if w.budget--; w.budget < 0 {
		return nil, nil
	}
	sa, sb := w.sum(a), w.sum(b)
	if x, _ := rivals(sa.total, sb.total); x == nil {
		return nil, nil
	}
	for _, c := range [][2]claims{{sa.here, sb.here}, {sa.rest, sb.below}, {sa.below, sb.rest}} {
		if x, y := rivals(c[0], c[1]); x != nil {
			return x, y
		}
	}
	few, many := a, b
	if len(b.names) < len(a.names) {
		few, many = b, a
	}
	for _, name := range few.names {
		if next := many.literal[name]; next != nil {
			if x, y := w.pair(few.literal[name], next); x != nil || w.budget < 0 {
				return x, y
			}
		}
	}
	if a.any != nil && b.any != nil {
		if x, y := w.pair(a.any, b.any); x != nil || w.budget < 0 {
			return x, y
		}
	}
	if x, y := w.across(a, b); x != nil || w.budget < 0 {
		return x, y
	}
	if a == b {
		return nil, nil
	}
	return w.across(b, a)
}

// across holds a's variable against b's literals.
func (w *walk) across(a, b *branch) (*Operation, *Operation) {
	if a.any == nil {
		return nil, nil
	}
	for _, name := range b.names {
		if name == "" {
			continue // a variable takes at least one byte
		}
		if x, y := w.pair(a.any, b.literal[name]); x != nil || w.budget < 0 {
			return x, y
		}
	}
	return nil, nil
}
