package auditpage

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/review"
)

// Bounds of counts.
const (
	periods   = 96
	maxGroups = 256
	maxShown  = 6 // names of a group
)

// The kinds of requests that a period counts.
const (
	kindSent = iota
	kindPassthrough
	kindRefused
	kinds
)

// tally is the requests that have a reason, or a credential, in common.
type tally struct {
	Name     string    `json:"name"` // "" for requests without a credential
	Sent     int64     `json:"sent"`
	Refused  int64     `json:"refused"`
	Sessions int       `json:"sessions"`
	Agents   []string  `json:"agents"`
	Last     time.Time `json:"last"`
	Names    []named   `json:"names"`   // the hosts of a reason, the operations of a credential
	Reasons  []named   `json:"reasons"` // of what was refused with a credential
}

type named struct {
	Name string `json:"name"`
	N    int64  `json:"n"`
}

// counts are what a page shows of many rows.
type counts struct {
	From     time.Time      `json:"from"`
	Step     float64        `json:"step"` // of a bucket, in seconds
	Buckets  [][kinds]int64 `json:"buckets"`
	Reasons  []tally        `json:"reasons"`
	Bindings []tally        `json:"bindings"`
	Rows     int64          `json:"rows"` // that were looked at
	Done     bool           `json:"done"`
	problem
}

// counts streams the counts of the selected rows, the newest first, so that a page has something to show at once.
func (p *Page) counts(w http.ResponseWriter, r *http.Request) error {
	s, err := p.search(r)
	if err != nil {
		return err
	}
	defer s.end()
	from, until, err := span(r.Context(), s.log.Log, s.filter)
	if err != nil {
		return err
	}
	step := max(time.Second, until.Sub(from)/periods+1)
	by := audit.GroupBy{Hosts: true}
	for i := range periods {
		by.Periods = append(by.Periods, from.Add(time.Duration(i)*step))
	}
	var groups []audit.Group
	c := counts{From: from, Step: step.Seconds()}
	out := newStream(w)
	err = s.eachWindow(func(part audit.Filter) error {
		more, err := s.log.Groups(r.Context(), part, by)
		if err != nil {
			return err
		}
		groups, c.Rows = append(groups, more...), s.newest-part.AfterSeq
		p.summarize(r.Context(), s.log, &c, groups)
		return out.send(c)
	})
	c.Done, c.problem = err == nil, problemOf(err)
	p.summarize(r.Context(), s.log, &c, groups)
	return out.send(c)
}

// span returns the time from the oldest selected row to the newest, as far as the log is in order.
func span(ctx context.Context, l *audit.Log, filter audit.Filter) (from, until time.Time, err error) {
	filter.Limit = 1
	one := func(row audit.Row) error { from = row.TS; return errEnough }
	if err = l.Each(ctx, filter, one); err != nil && !errors.Is(err, errEnough) {
		return
	}
	filter.Newest = true
	err = l.Each(ctx, filter, func(row audit.Row) error { until = row.TS; return nil })
	return
}

// summarize counts the requests of groups, as aileron audit summary does.
func (p *Page) summarize(ctx context.Context, l *openLog, c *counts, groups []audit.Group) {
	c.Buckets = make([][kinds]int64, periods)
	for _, g := range groups {
		if kind, ok := kindOf(g); ok {
			c.Buckets[max(0, g.Period)][kind] += g.Requests
		}
	}
	c.Reasons, c.Bindings = refusals(groups), []tally{}
	p.agents.with(l, func(known *review.Agents) {
		for _, u := range review.Uses(ctx, groups, known) {
			c.Bindings = append(c.Bindings, used(u))
		}
	})
	c.Bindings = c.Bindings[:min(len(c.Bindings), maxGroups)]
}

// kindOf returns which kind of requests a group counts, and false if it counts none.
func kindOf(g audit.Group) (int, bool) {
	switch g.Decision {
	case audit.DecisionRejected:
		return kindRefused, true
	case audit.DecisionPassthrough:
		return kindPassthrough, true
	case audit.DecisionProxied, audit.DecisionUpgrade:
		return kindSent, true
	}
	return kindSent, g.Event == audit.EventProxyUnknown
}

// refusals returns the refused requests of groups by their reason, the most frequent first.
func refusals(groups []audit.Group) []tally {
	byReason := map[string][]audit.Group{}
	for _, g := range groups {
		if kind, ok := kindOf(g); ok && kind == kindRefused {
			byReason[g.Reason] = append(byReason[g.Reason], g)
		}
	}
	list := []tally{}
	for reason, of := range byReason {
		t := tally{Name: bounded(cmp.Or(reason, "no reason"), maxText)}
		sessions := map[string]bool{}
		for _, g := range of {
			sessions[g.Session] = true
		}
		for _, s := range review.Stats(of, "host") {
			t.Refused += s.Refused
			if s.Last.After(t.Last) {
				t.Last = s.Last
			}
			t.Names = append(t.Names, named{bounded(s.Name, maxText), s.Refused})
		}
		t.Sessions, t.Names = len(sessions), t.Names[:min(len(t.Names), maxShown)]
		list = append(list, t)
	}
	slices.SortFunc(list, func(a, b tally) int {
		return cmp.Or(cmp.Compare(b.Refused, a.Refused), cmp.Compare(a.Name, b.Name))
	})
	return list[:min(len(list), maxGroups)]
}

// used returns the use of a credential.
func used(u review.Use) tally {
	t := tally{Name: bounded(u.Binding, maxText), Sent: u.Sent + u.Unknown, Refused: u.Refused,
		Sessions: len(u.Sessions), Agents: []string{}, Last: u.Last, Names: []named{}, Reasons: []named{}}
	for _, agent := range u.Agents[:min(len(u.Agents), maxShown)] {
		t.Agents = append(t.Agents, bounded(agent, 64))
	}
	for _, o := range u.Operations[:min(len(u.Operations), maxShown)] {
		t.Names = append(t.Names, named{bounded(cmp.Or(o.Operation, "passthrough"), maxText), o.Requests})
	}
	for _, r := range u.Reasons[:min(len(u.Reasons), maxShown)] {
		t.Reasons = append(t.Reasons, named{bounded(cmp.Or(r.Name, "no reason"), maxText), r.Requests})
	}
	return t
}
