package spec

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Index finds a request's operation. It is immutable, and safe for use by
// several goroutines. Finding costs the length of the path, however many
// operations there are.
type Index struct {
	connectors []*Connector
	exact      map[string]*tree // "host:port"
	wildcard   map[string]*tree // "parent:port", for any one label before parent
	hosts      []string         // all of them, sorted
	byName     map[operationName]*Operation
}

type operationName struct{ fqn, tool, name string }

// NewIndex combines connectors. Two operations of different connectors that
// can be the same request with different credentials are an error that names
// both.
func NewIndex(connectors []*Connector) (*Index, error) {
	ix := &Index{connectors: slices.Clone(connectors), exact: map[string]*tree{}, wildcard: map[string]*tree{}, byName: map[operationName]*Operation{}}
	for _, c := range connectors {
		for _, t := range c.Tools {
			for _, op := range t.Operations {
				ix.byName[operationName{string(c.FQN), t.Name, op.Name}] = op
				for _, h := range op.Hosts {
					ix.tree(h).add(op)
				}
			}
		}
	}
	ix.hosts = slices.Collect(maps.Keys(ix.exact))
	for k := range ix.wildcard {
		ix.hosts = append(ix.hosts, "*."+k)
	}
	slices.Sort(ix.hosts)
	if err := ix.conflict(); err != nil {
		return nil, err
	}
	return ix, nil
}

func hostPort(host string, port uint16) string { return host + ":" + strconv.Itoa(int(port)) }

func (ix *Index) tree(h HostPattern) *tree {
	in := ix.exact
	if h.Wildcard {
		in = ix.wildcard
	}
	k := hostPort(h.Name, h.Port)
	if in[k] == nil {
		in[k] = &tree{carriers: map[FQN]bool{}}
	}
	return in[k]
}

// trees are the host's own tree and its parent's wildcard tree, those that
// are there, in the order in which they are asked.
func (ix *Index) trees(host string, port uint16) []*tree {
	var found []*tree
	if t := ix.exact[hostPort(host, port)]; t != nil {
		found = append(found, t)
	}
	if label, parent, ok := strings.Cut(host, "."); ok && label != "" {
		if t := ix.wildcard[hostPort(parent, port)]; t != nil {
			found = append(found, t)
		}
	}
	return found
}

// Covers reports whether some operation names the host and port.
func (ix *Index) Covers(host string, port uint16) bool { return len(ix.trees(host, port)) > 0 }

// Hosts are all named hosts, as "host:port", sorted.
func (ix *Index) Hosts() []string { return slices.Clone(ix.hosts) }

// Operation finds an operation by its names.
func (ix *Index) Operation(fqn, tool, name string) (*Operation, bool) {
	op, ok := ix.byName[operationName{fqn, tool, name}]
	return op, ok
}

// Connectors are the connectors of the index, in their order.
func (ix *Index) Connectors() []*Connector { return slices.Clone(ix.connectors) }
