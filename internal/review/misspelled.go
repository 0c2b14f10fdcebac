package review

import (
	"context"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/hint"
)

// chosenValue is the value of a filter's flag, and where events have it.
type chosenValue struct {
	flag, value string
	of          func(audit.Group) string
}

// Misspelled returns what was probably meant by a value of the filter that no event has, or "".
func Misspelled(ctx context.Context, l Log, filter audit.Filter) string {
	chosen := []chosenValue{
		{"binding", filter.Binding, func(g audit.Group) string { return g.Binding }},
		{"operation", filter.Operation, func(g audit.Group) string { return g.Operation }},
		{"reason", filter.Reason, func(g audit.Group) string { return g.Reason }},
		{"connector", filter.Connector, func(g audit.Group) string { return g.Connector }},
		{"host", filter.Host, func(g audit.Group) string { return g.Host }},
	}
	chosen = slices.DeleteFunc(chosen, func(c chosenValue) bool { return c.value == "" })
	if len(chosen) == 0 {
		return ""
	}
	newest, err := l.List(ctx, audit.Filter{Limit: 1, Newest: true})
	if err != nil || len(newest) == 0 {
		return "" // the log was read before
	}
	among := audit.Filter{AfterSeq: max(0, newest[0].Seq-maxCompared)}
	groups, err := l.Groups(ctx, among, audit.GroupBy{Hosts: filter.Host != ""})
	if err != nil {
		return "" // as above
	}
	for _, c := range chosen {
		var known []string
		for _, g := range groups {
			if value := c.of(g); value != "" && !slices.Contains(known, value) && len(known) < maxKnown {
				known = append(known, value)
			}
		}
		if slices.Contains(known, c.value) {
			continue
		}
		if near := hint.Nearest(c.value, known); near != "" {
			return ": no event has --" + c.flag + " " + c.value + "; did you mean " + near + "?"
		}
	}
	return ""
}

// Connectors returns the FQNs of the connectors with a short name that the log has events of, sorted.
func Connectors(ctx context.Context, l Log, name string) (found []string, err error) {
	groups, err := l.Groups(ctx, audit.Filter{}, audit.GroupBy{})
	for _, g := range groups {
		if strings.HasSuffix(g.Connector, "/"+name) {
			found = append(found, g.Connector)
		}
	}
	slices.Sort(found)
	return slices.Compact(found), err
}

// maxCompared is with the values of how many of the newest rows a misspelled one is compared: about 10 ms of work.
const maxCompared = 8_000

// maxKnown bounds the values that a misspelled one is compared with.
const maxKnown = 4096
