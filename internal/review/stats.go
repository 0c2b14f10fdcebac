package review

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/ALRubinger/aileron/audit"
)

// Stat counts the requests that have a column's value in common.
type Stat struct {
	Name        string    `json:"name"` // "" for those without one
	Sent        int64     `json:"sent"`
	Passthrough int64     `json:"passthrough"`
	Refused     int64     `json:"refused"`
	Unknown     int64     `json:"unknown_outcomes"`
	Redactions  int64     `json:"redactions"`
	First       time.Time `json:"first"`
	Last        time.Time `json:"last"`
}

// Total returns the number of requests.
func (s Stat) Total() int64 { return s.Sent + s.Passthrough + s.Refused + s.Unknown }

// StatKinds returns what requests can be counted by, for [Stats].
func StatKinds() []string { return slices.Sorted(maps.Keys(statColumns())) }

func statColumns() map[string]func(audit.Group) string {
	return map[string]func(audit.Group) string{
		"binding":   func(g audit.Group) string { return g.Binding },
		"connector": func(g audit.Group) string { return g.Connector },
		"operation": func(g audit.Group) string {
			if g.Operation == "" {
				return ""
			}
			return g.Tool + " " + g.Operation
		},
		"host":    func(g audit.Group) string { return g.Host },
		"session": func(g audit.Group) string { return g.Session },
		"reason":  func(g audit.Group) string { return g.Reason },
	}
}

// Stats counts requests by one of [StatKinds], the most frequent first. Groups by "host" must have hosts.
func Stats(groups []audit.Group, by string) []Stat {
	column := statColumns()[by]
	found := map[string]*Stat{}
	for _, g := range groups {
		if !isOutcome(g) {
			continue
		}
		name := column(g)
		s := found[name]
		if s == nil {
			s = &Stat{Name: name, First: g.First, Last: g.Last}
			found[name] = s
		}
		s.add(g)
	}
	all := []Stat{}
	for _, s := range found {
		all = append(all, *s)
	}
	slices.SortFunc(all, func(a, b Stat) int {
		return cmp.Or(cmp.Compare(b.Total(), a.Total()), cmp.Compare(a.Name, b.Name))
	})
	return all
}

func (s *Stat) add(g audit.Group) {
	s.Redactions += g.Redactions
	if g.First.Before(s.First) {
		s.First = g.First
	}
	if g.Last.After(s.Last) {
		s.Last = g.Last
	}
	switch {
	case g.Event == audit.EventProxyUnknown:
		s.Unknown += g.Requests
	case g.Decision == audit.DecisionRejected:
		s.Refused += g.Requests
	case g.Decision == audit.DecisionPassthrough:
		s.Passthrough += g.Requests
	default:
		s.Sent += g.Requests
	}
}
