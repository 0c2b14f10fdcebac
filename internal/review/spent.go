package review

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/config"
	"github.com/ALRubinger/aileron/internal/spending"
)

// SpentKinds returns what the use of requests can be summed by, for [Spent].
func SpentKinds() []string {
	return append(slices.Sorted(maps.Keys(spentColumns())), "agent")
}

func spentColumns() map[string]func(*audit.Row) string {
	return map[string]func(*audit.Row) string{
		"session":   func(r *audit.Row) string { return r.SessionID },
		"binding":   func(r *audit.Row) string { return r.Binding },
		"connector": func(r *audit.Row) string { return r.ConnectorFQN },
		"day":       func(r *audit.Row) string { return r.TS.Local().Format("2006-01-02") },
		"model":     spending.ModelOf,
	}
}

// Spending returns a sum by one of [SpentKinds].
func Spending(ctx context.Context, prices config.Prices, by string, agents *Agents) *spending.Sum {
	column := spentColumns()[by]
	if by == "agent" {
		column = func(r *audit.Row) string { return agents.Of(ctx, *r) }
	}
	return spending.New(prices, spending.MaxNames, column)
}

// Spent returns what the selected requests have used, by one of [SpentKinds].
func Spent(ctx context.Context, l Log, filter audit.Filter, prices config.Prices, by string) ([]spending.Use,
	error) {
	sum := Spending(ctx, prices, by, &Agents{Open: func() (Log, error) { return l, nil }})
	for _, f := range Outcomes(filter) {
		if err := l.Each(ctx, f, func(r audit.Row) error { sum.Add(&r); return nil }); err != nil {
			return nil, err
		}
	}
	uses := sum.Uses()
	if by == "day" {
		slices.SortFunc(uses, func(a, b spending.Use) int { return strings.Compare(a.Name, b.Name) })
	}
	return uses, nil
}

// Outcomes returns filters for the outcomes of what was sent, which the log finds by its index. One that has a limit, a
// decision or an event is left as it is.
func Outcomes(f audit.Filter) (all []audit.Filter) {
	if f.Limit > 0 || f.Decision != "" || f.Event != "" {
		return []audit.Filter{f}
	}
	for _, d := range []audit.Decision{audit.DecisionProxied, audit.DecisionUpgrade, audit.DecisionPassthrough} {
		one := f
		one.Decision = d
		all = append(all, one)
	}
	for _, e := range []audit.Event{audit.EventProxyUnknown, audit.EventProxyRejected} { // the latter may have been sent
		one := f
		one.Event = e
		all = append(all, one)
	}
	return all
}
