package spec

import (
	"slices"
	"strings"
)

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
	covers := func(h HostPattern) bool { return h.covers(host, port) || port == 0 && h.covers(host, h.Port) }
	return slices.ContainsFunc(c.Tools, func(t Tool) bool {
		return slices.ContainsFunc(t.Operations, func(op *Operation) bool { return slices.ContainsFunc(op.Hosts, covers) })
	})
}
