package review

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
)

// Use is what one credential was used for. A Use without a binding is of the requests that carried none.
type Use struct {
	Binding    string           `json:"binding"`
	Connectors []string         `json:"connectors"`
	Sessions   []string         `json:"sessions"`
	Agents     []string         `json:"agents"`
	Operations []OperationCount `json:"operations"` // of what was sent, the most frequent first
	Sent       int64            `json:"sent"`
	Refused    int64            `json:"refused"`
	Unknown    int64            `json:"unknown_outcomes"` // their session was killed
	Reasons    []NameCount      `json:"reasons"`          // of what was refused, the most frequent first
	Redactions int64            `json:"redactions"`
	First      time.Time        `json:"first"`
	Last       time.Time        `json:"last"`
}

// OperationCount is the number of requests of one operation.
type OperationCount struct {
	Tool      string `json:"tool"`
	Operation string `json:"operation"`
	Requests  int64  `json:"requests"`
}

// NameCount is the number of requests that have a name, such as a reason, in common.
type NameCount struct {
	Name     string `json:"name"`
	Requests int64  `json:"requests"`
}

// Uses returns what each credential was used for, by binding, and last the requests without a credential. A request
// that was refused before a credential was chosen for it is counted with the one that its session, or else every
// session, used for its connector; if there is none or more than one, it is counted without.
func Uses(ctx context.Context, groups []audit.Group, agents *Agents) []Use {
	return usesWith(ctx, groups, bindingsOf(groups), agents)
}

// UsesBySession returns what each session used a credential for, in the order in which they started.
func UsesBySession(ctx context.Context, groups []audit.Group, agents *Agents, binding string) (uses []Use) {
	chosen, bySession := bindingsOf(groups), map[string][]audit.Group{}
	for _, g := range groups {
		bySession[g.Session] = append(bySession[g.Session], g)
	}
	for _, session := range slices.Sorted(maps.Keys(bySession)) {
		for _, u := range usesWith(ctx, bySession[session], chosen, agents) {
			if u.Binding == binding {
				uses = append(uses, u)
			}
		}
	}
	return uses
}

// usesWith is Uses with the bindings that were used for connectors.
func usesWith(ctx context.Context, groups []audit.Group, chosen usedBindings, agents *Agents) []Use {
	byBinding := map[string]*Use{}
	for _, g := range groups {
		if !isOutcome(g) {
			continue
		}
		binding := cmp.Or(g.Binding, chosen.of(g))
		u := byBinding[binding]
		if u == nil {
			u = &Use{Binding: binding, Connectors: []string{}, Sessions: []string{}, Agents: []string{},
				Operations: []OperationCount{}, Reasons: []NameCount{}, First: g.First, Last: g.Last}
			byBinding[binding] = u
		}
		u.add(g)
	}
	var all []Use
	for _, u := range byBinding {
		for _, s := range u.Sessions {
			u.Agents = addName(u.Agents, agents.Of(ctx, audit.Row{SessionID: s}))
		}
		u.sort()
		all = append(all, *u)
	}
	slices.SortFunc(all, func(a, b Use) int {
		if (a.Binding == "") != (b.Binding == "") {
			return cmp.Compare(b.Binding, a.Binding)
		}
		return cmp.Compare(a.Binding, b.Binding)
	})
	return all
}

// isOutcome reports whether the rows of a group are what came of requests.
func isOutcome(g audit.Group) bool {
	return g.Event == audit.EventProxyUnknown || g.Decision != "" && g.Decision != audit.DecisionDisabled
}

// add counts a group.
func (u *Use) add(g audit.Group) {
	u.Connectors = addName(u.Connectors, g.Connector)
	u.Sessions = addName(u.Sessions, g.Session)
	u.Redactions += g.Redactions
	if g.First.Before(u.First) {
		u.First = g.First
	}
	if g.Last.After(u.Last) {
		u.Last = g.Last
	}
	switch {
	case g.Event == audit.EventProxyUnknown:
		u.Unknown += g.Requests
	case g.Decision == audit.DecisionRejected:
		u.Refused += g.Requests
		u.Reasons = addCount(u.Reasons, NameCount{g.Reason, g.Requests})
	default:
		u.Sent += g.Requests
		u.addOperation(OperationCount{g.Tool, g.Operation, g.Requests})
	}
}

func (u *Use) addOperation(o OperationCount) {
	for i := range u.Operations {
		if u.Operations[i].Tool == o.Tool && u.Operations[i].Operation == o.Operation {
			u.Operations[i].Requests += o.Requests
			return
		}
	}
	u.Operations = append(u.Operations, o)
}

func (u *Use) sort() {
	slices.Sort(u.Connectors)
	slices.Sort(u.Sessions)
	slices.Sort(u.Agents)
	slices.SortFunc(u.Operations, func(a, b OperationCount) int {
		return cmp.Or(cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.Tool, b.Tool), cmp.Compare(a.Operation, b.Operation))
	})
	slices.SortFunc(u.Reasons, func(a, b NameCount) int {
		return cmp.Or(cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.Name, b.Name))
	})
}

// addName adds a name to those that are known, unless it is one of them or empty.
func addName(names []string, name string) []string {
	if name == "" {
		return names
	}
	for i := len(names) - 1; i >= 0; i-- { // groups of a session are near each other, and there may be many sessions
		if names[i] == name {
			return names
		}
	}
	return append(names, name)
}

func addCount(counts []NameCount, c NameCount) []NameCount {
	for i := range counts {
		if counts[i].Name == c.Name {
			counts[i].Requests += c.Requests
			return counts
		}
	}
	return append(counts, c)
}

// usedBindings are the bindings that were used for a connector, in one session and in all (session "").
type usedBindings map[struct{ session, connector string }][]string

func bindingsOf(groups []audit.Group) usedBindings {
	used := usedBindings{}
	for _, g := range groups {
		if g.Binding == "" || g.Connector == "" {
			continue
		}
		for _, session := range []string{g.Session, ""} {
			key := struct{ session, connector string }{session, g.Connector}
			used[key] = addName(used[key], g.Binding)
		}
	}
	return used
}

// of returns the binding with which requests without one are counted, or "".
func (b usedBindings) of(g audit.Group) string {
	if g.Connector == "" || g.Decision != audit.DecisionRejected {
		return ""
	}
	for _, session := range []string{g.Session, ""} {
		if used := b[struct{ session, connector string }{session, g.Connector}]; len(used) == 1 {
			return used[0]
		}
	}
	return ""
}

// Used is what audit used prints.
type Used struct {
	Use
	BySession []Use `json:"by_session"`
}

// UsesOf returns what the credential was used for whose binding or connector has the name.
func UsesOf(ctx context.Context, l Log, filter audit.Filter, name string) (used Used, err error) {
	groups, err := l.Groups(ctx, filter, audit.GroupBy{})
	if err != nil {
		return used, err
	}
	agents := Agents{Open: func() (Log, error) { return l, nil }}
	uses := slices.DeleteFunc(Uses(ctx, groups, &agents), func(u Use) bool { return u.Binding == "" })
	var known []string
	for _, u := range uses {
		known = append(known, u.Binding)
	}
	fitting := slices.DeleteFunc(slices.Clone(uses), func(u Use) bool {
		return u.Binding != name && !slices.Contains(shortNames(u.Connectors), name) && !slices.Contains(u.Connectors, name)
	})
	switch {
	case len(fitting) == 0:
		err := fmt.Errorf("find the uses of %.200s: no request carried such a credential", name)
		if near := hint.Nearest(name, known); near != "" {
			return used, hint.New(err, "did you mean %s?", near)
		}
		return used, hint.New(err, "see which were used with: aileron audit summary")
	case len(fitting) > 1:
		known = nil
		for _, u := range fitting {
			known = append(known, u.Binding)
		}
		return used, hint.New(failure.Usagef("%s can be %s", name, hint.Alternatives(known)), "write one of them in full")
	}
	used.Use = fitting[0]
	used.BySession = append([]Use{}, UsesBySession(ctx, groups, &agents, used.Binding)...)
	return used, nil
}
