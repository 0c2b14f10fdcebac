package search

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/spec"
)

// Group is a group of operations of a tool.
type Group struct {
	Name       string // as the first operation has it
	Operations []*spec.Operation
}

// Count returns how many operations read, write and delete: see [Does].
func (g Group) Count() (reads, writes, deletes int) {
	for _, op := range g.Operations {
		switch Does(op.Method) {
		case Reads:
			reads++
		case Deletes:
			deletes++
		default:
			writes++
		}
	}
	return reads, writes, deletes
}

// What a method does.
const (
	Reads   = "read"
	Writes  = "write"
	Deletes = "delete"
)

// Does returns what an operation of a method does: what may be more than reading is Writes.
func Does(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return Reads
	case http.MethodDelete:
		return Deletes
	}
	return Writes
}

// Groups returns the groups of operations, sorted by name. Names that differ only in case are one.
func Groups(operations []*spec.Operation) []Group {
	var groups []Group
	at := make(map[string]int)
	for _, op := range operations {
		key := strings.ToLower(op.Group)
		i, known := at[key]
		if !known {
			i = len(groups)
			at[key] = i
			groups = append(groups, Group{Name: op.Group})
		}
		groups[i].Operations = append(groups[i].Operations, op)
	}
	slices.SortFunc(groups, func(a, b Group) int {
		return cmp.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name))
	})
	return groups
}

// FindGroup returns the group of a name, in any case. Several words are a name with dashes between them.
func FindGroup(groups []Group, words ...string) (Group, bool) {
	name := strings.Join(words, "-")
	i := slices.IndexFunc(groups, func(g Group) bool { return strings.EqualFold(g.Name, name) })
	if i < 0 || name == "" {
		return Group{}, false
	}
	return groups[i], true
}
