package audit

import (
	"path/filepath"
	"time"

	"github.com/ALRubinger/aileron/audit/internal/chain"
	"github.com/ALRubinger/aileron/audit/internal/table"
)

// turnSpan returns how long the next commit waits for its turn: the rows of a session's journal can wait, and what a
// command records cannot.
func (l *Log) turnSpan() time.Duration {
	span := l.lockWait.Span()
	switch {
	case l.turns.Missed:
		return min(span, chain.StuckTimeout)
	case l.journal == nil || l.lockWait.IsStuck():
		return span
	case l.turns.Span > 0:
		return l.turns.Span
	}
	return table.TurnTimeout
}

// takeTurn waits at most for span until the processes that asked earlier have written to the database, and returns a
// function that ends the turn.
//
// SQLite's own lock is not fair: a process that does not get it sleeps, for up to 100 ms, and the lock is free or not
// when it wakes up, so that among many sessions some never get it. The kernel keeps a queue of those that wait for a
// lock of a file. The queue is for fairness only: SQLite's lock protects the database, and a process that cannot open
// the file, or does not get its turn in time, writes without it. That is reported once.
func (l *Log) takeTurn(span time.Duration) (end func()) {
	f, err := l.turns.Take(filepath.Join(filepath.Dir(l.path), table.TurnName), span)
	if err == nil {
		l.turns.Missed = false
		return func() { _ = f.Close() } // which releases its locks
	}
	if known := l.turns.Missed || l.lockWait.Stuck; !known {
		l.turns.Missed = true
		if f := l.opts.OnTurn; f != nil {
			f(err)
		}
	}
	return func() {}
}
