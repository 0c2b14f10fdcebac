package auditlog

import (
	"context"
	"errors"
	"fmt"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/hint"
)

// PlanPrune returns what q removes from the log. An error has what can be done about it.
func PlanPrune(ctx context.Context, l *audit.Log, q audit.PruneQuery) (*audit.PrunePlan, error) {
	plan, err := l.PlanPrune(ctx, q)
	var refused *audit.UnverifiedError
	switch {
	case errors.As(err, &refused):
		return nil, hint.New(fmt.Errorf("prune the audit log: %w", err),
			"aileron audit verify lists what does not fit; keep this log as the evidence, and begin another one with it moved")
	case errors.Is(err, audit.ErrNoSignedHead):
		return nil, hint.New(err, "it must have what aileron audit head printed")
	case err != nil:
		return nil, Hint(err)
	}
	return &plan, nil
}

// Prune removes what was planned, calls progress with the number of rows removed so far, and returns the row that
// stands for them. An error has what can be done about it.
func Prune(ctx context.Context, l *audit.Log, plan *audit.PrunePlan, progress func(removed int64)) (audit.Row, error) {
	var removed int64
	row, err := l.Prune(ctx, *plan, func(n int64) {
		removed = n
		progress(n)
	})
	switch {
	case errors.Is(err, audit.ErrPlanOutdated):
		return row, hint.New(err, "run it again")
	case err != nil && (removed > 0 || row.Seq > 0):
		return row, hint.New(err, "the log is in order; run it again to remove the rest, %d events", plan.Rows-removed)
	}
	return row, Hint(err)
}
