package spec

import (
	"maps"
	"slices"
)

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
		for _, op := range s[method] {
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
