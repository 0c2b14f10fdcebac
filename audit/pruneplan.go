package audit

import (
	"context"
	"fmt"
	"time"

	"github.com/ALRubinger/aileron/audit/internal/chain"
	"github.com/ALRubinger/aileron/audit/internal/journal"
	"github.com/ALRubinger/aileron/audit/internal/table"
)

// PruneQuery selects the rows that Prune may remove: those before a time, from the first row of the log on, up to the
// first one that is not before it, or that is of a session that had not ended then.
type PruneQuery struct {
	Before time.Time
	// Running, if not nil, reports whether a session has not ended. One with a journal has not, whatever it reports.
	Running func(session string) bool
	// Evidence is what these rows are compared with before they are removed, as with Verify.
	Evidence Evidence
}

// PrunePlan is what a prune removes. Its rows were verified.
type PrunePlan struct {
	Rows     int64     `json:"rows"` // 0: nothing
	First    int64     `json:"first_seq,omitempty"`
	Last     int64     `json:"last_seq,omitempty"`
	From     time.Time `json:"from,omitzero"`
	Until    time.Time `json:"until,omitzero"`
	Sessions int       `json:"sessions"`

	NewerTS time.Time `json:"newer_ts,omitzero"`
	Newer   int64     `json:"newer_seq,omitempty"`    // the first row that stays, because of its time
	Session string    `json:"kept_session,omitempty"` // the session because of which the row after Last stays

	before   time.Time
	stands   PrunedRows // what stands for these rows, and those that were pruned before them
	recorded bool       // by a prune that was killed: only the rows have to go
}

// UnverifiedError is returned for rows that are not removed because they do not verify: a prune must not remove the
// evidence.
type UnverifiedError struct{ Report Report }

func (e *UnverifiedError) Error() string {
	return fmt.Sprintf("rows that do not verify are not removed: %s", e.Report.Why)
}

// pruneBound is where a walk over the rows that may be removed ends.
type pruneBound struct {
	before   int64 // in ns since 1970
	running  func(session string) bool
	sessions map[string]bool // whether they have not ended
	walk     *chain.Walk
	plan     *PrunePlan
}

// reached returns ErrBound for the first row that stays.
func (b *pruneBound) reached(seq int64, session string, ts int64) error {
	p := b.plan
	// What a prune that was killed has recorded goes in any case.
	if r := b.walk.Pruned; r == nil || seq > r.Last {
		if ts >= b.before {
			p.Newer, p.NewerTS = seq, time.Unix(0, ts).UTC()
			return chain.ErrBound
		}
		if b.isRunning(session) {
			p.Session = session
			return chain.ErrBound
		}
	}
	if p.Rows == 0 {
		p.First, p.From = seq, time.Unix(0, ts).UTC()
	}
	p.Rows++
	p.Last, p.Until = seq, time.Unix(0, ts).UTC()
	return nil
}

// isRunning reports whether a session has not ended.
func (b *pruneBound) isRunning(session string) bool {
	if session == "" {
		return false
	}
	running, known := b.sessions[session]
	if !known {
		running = b.running(session)
		b.sessions[session] = running
	}
	return running
}

// PlanPrune returns what a prune removes, and changes nothing. It walks over these rows, and compares them with all
// that is kept beside the log and with q.Evidence, as Verify does; the error is an *UnverifiedError if they do not
// fit.
func (l *Log) PlanPrune(ctx context.Context, q PruneQuery) (PrunePlan, error) {
	if err := table.CheckSchema(l.path); err != nil {
		return PrunePlan{}, err
	}
	l.flush(ctx)
	plan := PrunePlan{before: q.Before}
	running, err := l.notEnded(ctx, q)
	if err != nil {
		return plan, err
	}
	known, err := chain.ReadHeads(l.head.Path, l.head.WitnessPath)
	if err != nil {
		return plan, err
	}
	w := chain.NewWalk()
	bound := &pruneBound{before: table.Nanos(q.Before), running: running, sessions: map[string]bool{}, walk: w,
		plan: &plan}
	w.Until = bound.reached
	if err := l.walk(ctx, w, q.Evidence, known, true); err != nil {
		return plan, err
	}
	for _, running := range bound.sessions {
		if !running {
			plan.Sessions++
		}
	}
	if !w.Report.OK {
		return plan, &UnverifiedError{w.Report}
	}
	plan.stands = PrunedRows{First: plan.First, Last: plan.Last, Rows: plan.Rows, Hash: w.Last.Hash, From: plan.From,
		Until: plan.Until}
	if p := w.Pruned; p != nil {
		plan.recorded = plan.Last <= p.Last
		plan.stands.First, plan.stands.From = p.First, p.From
		plan.stands.Rows += p.Rows - w.Report.Left
	}
	return plan, nil
}

// notEnded returns a function that reports whether a session had not ended at the time of the query: it runs, or has a
// later row. A part of a session's rows would be mistaken for all of them.
func (l *Log) notEnded(ctx context.Context, q PruneQuery) (func(string) bool, error) {
	open := map[string]bool{}
	names, err := journal.Beside(l.path)
	if err != nil {
		return nil, fmt.Errorf("look for the journals of sessions: %w", err)
	}
	for _, name := range names {
		open[journal.SessionOf(name)] = true
	}
	if err := l.db.SessionsSince(ctx, q.Before, func(session string) { open[session] = true }); err != nil {
		return nil, err
	}
	return func(session string) bool { return open[session] || q.Running != nil && q.Running(session) }, nil
}
