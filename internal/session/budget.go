package session

import (
	"context"
	"fmt"
	"strings"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/proxy/meter"
)

// newLedger returns what counts the use of the session, and tells the owner what a budget of bytes does not see.
func (s *Session) newLedger() *meter.Ledger {
	if s.opts.Budget[meter.Bytes] > 0 && len(s.opts.Config.Tunnel) > 0 {
		s.opts.Infof("aileron: warning: the budget of bytes does not see the hosts of tunnel in config.toml (%s): they are "+
			"not decrypted, and nothing of them is counted", strings.Join(s.opts.Config.Tunnel, ", "))
	}
	return meter.New(meter.Options{Limits: s.opts.Budget, Notice: s.budgetReached})
}

// budgetReached records that a limit is nearly reached, or is, and tells the owner. Each limit comes here at most
// twice.
func (s *Session) budgetReached(n meter.Notice) {
	ctx, cancel := context.WithTimeout(context.Background(), approvalRecordTimeout)
	defer cancel()
	row := s.row(audit.EventBudgetReached, map[string]any{"meter": n.Name, "used": n.Used, "limit": n.Limit,
		"percent": n.Percent})
	if _, err := (tallied{s.audit, &s.tally}).Append(ctx, row); err != nil {
		s.opts.Log.Warn("a row of the budget could not be written", "error", err)
	}
	if s.opts.Notifier == nil {
		return
	}
	text := fmt.Sprintf("the session %s has used %d of its budget of %d %s", s.id, n.Used, n.Limit, n.Name)
	if n.Used >= n.Limit {
		text += ": it gets no more"
	}
	s.opts.Notifier.Tell(text)
}
