package session

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/daybook"
	"github.com/ALRubinger/aileron/proxy/meter"
)

// openLedger opens what counts the use of the session, and tells the owner what a budget of bytes does not see.
func (s *Session) openLedger(context.Context) (err error) {
	b := s.opts.Config.Budget
	limits := meter.Options{Limits: s.opts.Budget, Day: numbers(b.Day), Bindings: map[string]meter.Limits{},
		Notice: s.budgetReached, Warn: func(err error) { s.opts.Log.Warn("a budget is not exact", "error", err) }}
	bytes := cmp.Or(limits.Limits[meter.Bytes], limits.Day[meter.Bytes]) > 0
	for name, of := range b.Binding {
		limits.Bindings[name] = numbers(of)
		bytes = bytes || limits.Bindings[name][meter.Bytes] > 0
	}
	if bytes && len(s.opts.Config.Tunnel) > 0 {
		s.opts.Infof("aileron: warning: the budget of bytes does not see the hosts of tunnel in config.toml (%s): they are "+
			"not decrypted, and nothing of them is counted", strings.Join(s.opts.Config.Tunnel, ", "))
	}
	if len(limits.Day)+len(limits.Bindings) > 0 {
		s.daybook, err = daybook.Open(daybook.Options{Dir: filepath.Join(s.opts.Home, "budgets"), Session: s.id,
			Alive: func(id string) bool { return Alive(s.opts.Home, id) }})
		limits.Book = s.daybook
	}
	s.ledger = meter.New(limits)
	return err
}

// numbers returns limits of config.toml as those of a ledger.
func numbers[T ~int64](limits map[string]T) meter.Limits {
	all := meter.Limits{}
	for name, most := range limits {
		all[name] = int64(most)
	}
	return all
}

// budgetReached records that a limit is nearly reached, or is, and tells the owner. Each limit comes here at most
// twice.
func (s *Session) budgetReached(n meter.Notice) {
	ctx, cancel := context.WithTimeout(context.Background(), approvalRecordTimeout)
	defer cancel()
	row := s.row(audit.EventBudgetReached, map[string]any{"budget": n.Budget, "meter": n.Name, "used": n.Used,
		"limit": n.Limit, "percent": n.Percent})
	row.Binding = n.Binding
	if _, err := (tallied{s.audit, &s.tally}).Append(ctx, row); err != nil {
		s.opts.Log.Warn("a row of the budget could not be written", "error", err)
	}
	if s.opts.Notifier == nil {
		return
	}
	whose := "the session " + s.id + " has"
	switch n.Budget {
	case meter.OfDay:
		whose = "the sessions of this day have"
	case meter.OfBinding:
		whose = "the sessions of this day, with the credential " + n.Binding + ", have"
	}
	text := fmt.Sprintf("%s used %d of the budget of %d %s", whose, n.Used, n.Limit, n.Name)
	if n.Used >= n.Limit {
		text += ": there is no more"
		if s.opts.Config.Budget.AtLimit == "ask" {
			text += " without your approval"
		}
	}
	s.opts.Notifier.Tell(text)
}

// budget returns what the session may use up, as NAME=AMOUNT, or BUDGET:NAME=AMOUNT for the budgets of a day.
func (o Options) budget() (all []string) {
	add := func(prefix string, limits meter.Limits) {
		for _, name := range slices.Sorted(maps.Keys(limits)) {
			all = append(all, fmt.Sprintf("%s%s=%d", prefix, name, limits[name]))
		}
	}
	add("", o.Budget)
	add("day:", numbers(o.Config.Budget.Day))
	for _, name := range slices.Sorted(maps.Keys(o.Config.Budget.Binding)) {
		add(name+":", numbers(o.Config.Budget.Binding[name]))
	}
	return all
}
