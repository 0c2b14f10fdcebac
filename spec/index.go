package spec

import (
	"maps"
	"slices"
	"strconv"
	"strings"
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

// operationName identifies an operation within an index.
type operationName struct{ fqn, tool, name string }

// NewIndex returns the index of all operations of the connectors. It returns an
// error that names both if two operations of different connectors can be the
// same request with different credentials.
func NewIndex(connectors []*Connector) (*Index, error) {
	ix := &Index{
		connectors: slices.Clone(connectors),
		exact:      map[string]*tree{},
		wildcard:   map[string]*tree{},
		byHand:     map[string]*tree{},
		byName:     map[operationName]*Operation{},
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

// Hosts returns all named hosts as "host:port", sorted.
func (ix *Index) Hosts() []string { return slices.Clone(ix.hosts) }

// Operation returns the operation of that name.
func (ix *Index) Operation(fqn, tool, name string) (*Operation, bool) {
	op, ok := ix.byName[operationName{fqn, tool, name}]
	return op, ok
}

// Connectors returns the connectors of the index, in their order.
func (ix *Index) Connectors() []*Connector { return slices.Clone(ix.connectors) }
