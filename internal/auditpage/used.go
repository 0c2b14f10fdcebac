package auditpage

import (
	"maps"
	"net/http"
	"slices"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/config"
	"github.com/ALRubinger/aileron/internal/review"
	"github.com/ALRubinger/aileron/internal/spending"
)

// maxMeters bounds the meters of which a page shows the sums.
const maxMeters = 8

// usage is what the selected requests have used, as aileron audit used counts it.
type usage struct {
	Meters   []string  `json:"meters"`
	Currency string    `json:"currency,omitempty"` // "" where nothing has a price
	Groups   []useList `json:"groups"`
	Rows     int64     `json:"rows"` // that were looked at
	Done     bool      `json:"done"`
	problem
}

// useList is what was used by each model, agent or session.
type useList struct {
	By   string    `json:"by"`
	Uses []useLine `json:"uses"`
	More int       `json:"more,omitempty"` // names that are not among them
}

type useLine struct {
	Name     string           `json:"name"`
	Agent    string           `json:"agent,omitempty"` // of a session
	Requests int64            `json:"requests"`
	Bytes    int64            `json:"bytes"`
	Meters   map[string]int64 `json:"meters"`
	Cost     string           `json:"cost,omitempty"`
}

// used streams what the selected requests have used, the newest first.
func (p *Page) used(w http.ResponseWriter, r *http.Request) error {
	var prices config.Prices
	if p.opts.Prices != nil {
		var err error
		if prices, err = p.opts.Prices(); err != nil {
			return err
		}
	}
	s, err := p.search(r)
	if err != nil {
		return err
	}
	defer s.end()
	agent := func(row *audit.Row) string { return p.agents.of(r.Context(), s.log, *row) }
	kinds := []string{"model", "agent", "session"}
	sums := []*spending.Sum{
		spending.New(prices, spending.MaxNames, spending.ModelOf),
		spending.New(prices, spending.MaxNames, agent),
		spending.New(prices, spending.MaxNames, func(row *audit.Row) string { return row.SessionID }),
	}
	u := usage{}
	summarize := func() {
		u.Meters, u.Groups, u.Currency = []string{}, nil, ""
		for i, sum := range sums {
			u.add(kinds[i], sum.Uses(), func(session string) string { return agent(&audit.Row{SessionID: session}) })
		}
	}
	out := newStream(w)
	err = s.eachWindow(func(part audit.Filter) error {
		for _, f := range review.Outcomes(part) {
			err := s.log.Each(r.Context(), f, func(row audit.Row) error {
				for _, sum := range sums {
					sum.Add(&row)
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		u.Rows = s.newest - part.AfterSeq
		summarize()
		return out.send(u)
	})
	summarize()
	u.Done, u.problem = err == nil, problemOf(err)
	return out.send(u)
}

// add adds the uses of one kind. agent returns the agent of a session.
func (u *usage) add(by string, uses []spending.Use, agent func(session string) string) {
	list := useList{By: by, Uses: []useLine{}, More: max(0, len(uses)-maxGroups)}
	for _, use := range uses[:len(uses)-list.More] {
		l := useLine{Name: bounded(use.Name, maxText), Requests: use.Requests, Bytes: use.Bytes, Meters: use.Meters}
		if by == "session" && use.Name != spending.Other {
			l.Agent = agent(use.Name)
		}
		if use.Cost != nil {
			l.Cost, u.Currency = use.CostText(), bounded(use.Currency, 16)
		}
		for _, name := range slices.Sorted(maps.Keys(use.Meters)) {
			if len(u.Meters) < maxMeters && !slices.Contains(u.Meters, name) {
				u.Meters = append(u.Meters, name)
			}
		}
		list.Uses = append(list.Uses, l)
	}
	slices.Sort(u.Meters)
	u.Groups = append(u.Groups, list)
}
