package audit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ALRubinger/aileron/audit/internal/chain"
	"github.com/ALRubinger/aileron/audit/internal/journal"
)

// Outage is a period in which the log could not be written.
type Outage struct {
	Since time.Time
	Err   error // of the first commit that failed
	// Admitting is set if another process has locked the database: requests are served, because their rows are durable
	// in the journal of the session, until that is full.
	Admitting bool
	// Over is set when the log can be written again; the fields below are set only then.
	Over    bool
	Until   time.Time
	Refused int // requests that were refused and have no row of their own
}

// ReasonUnavailable is the Row.Reason of a denial because the log could not be written, and of the row that counts
// such denials.
const ReasonUnavailable = "audit_unavailable"

// retryEvery is the interval at which deferred rows are retried while no other row is appended.
const retryEvery = time.Second

// LostError is returned by Close if rows are not in the log.
type LostError struct {
	Kept    int    // rows in the journal: the next Open adds them to the log
	Path    string // of the journal
	Lost    int    // rows that are stored nowhere
	Refused int    // refused requests that have no row and that no row counts
	Err     error
}

func (e *LostError) Error() string {
	text := ErrUnavailable.Error()
	if e.Kept > 0 {
		text += fmt.Sprintf(": %s kept in %s until it can", rowCount(e.Kept), e.Path)
	}
	if e.Lost > 0 {
		text += fmt.Sprintf(": %s lost", rowCount(e.Lost))
	}
	if e.Refused > 0 {
		text += fmt.Sprintf(": %d refused requests have no row", e.Refused)
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// rowCount returns n with its noun and verb.
func rowCount(n int) string {
	if n == 1 {
		return "1 row is"
	}
	return fmt.Sprintf("%d rows are", n)
}

// Unwrap returns ErrUnavailable and the cause.
func (e *LostError) Unwrap() []error { return []error{ErrUnavailable, e.Err} }

// countRefusal counts a denial that could not be recorded.
func (w *writer) countRefusal(r *Row) {
	if r.Decision != DecisionRejected {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.log == nil || w.closed {
		return
	}
	if w.refused++; w.refused == 1 && !w.leading {
		w.timer.Reset(retryEvery)
	}
}

// refusedRow returns the row that counts n refused requests without a row of their own. w.mu is locked.
func (w *writer) refusedRow(n int) *Row {
	fields := map[string]any{"requests": n}
	if !w.since.IsZero() {
		fields["since"] = w.since.UTC().Format(chain.TimeFormat)
	}
	return &Row{
		ID: NewID(), TS: time.Now(), Event: EventSandboxRejected, SessionID: w.log.opts.Session,
		Source: SourceRequestBoundary, Decision: DecisionRejected, Reason: ReasonUnavailable, Status: 503, Fields: fields,
	}
}

// beginOutage records that a commit failed, and reports the first failure, and the first because of which requests are
// refused.
func (w *writer) beginOutage(err error, admitting bool) {
	w.failed, w.eased = time.Now(), false
	switch {
	case w.outage == nil:
		w.outage = &Outage{Since: w.failed, Err: err, Admitting: admitting}
		w.mu.Lock()
		w.since = w.failed
		w.mu.Unlock()
	case w.outage.Admitting && !admitting:
		w.outage.Err, w.outage.Admitting = err, false
	default:
		return
	}
	if f := w.log.opts.OnOutage; f != nil {
		f(*w.outage)
	}
}

// easeOutage records that a commit succeeded. Others may still fail, so the outage is over only when none has failed
// for retryEvery.
func (w *writer) easeOutage(refused int) {
	w.eased = true
	w.mu.Lock()
	w.outage.Refused += refused + w.noted
	w.noted = 0
	w.mu.Unlock()
	w.endOutage(retryEvery)
}

// endOutage ends the outage if a commit has succeeded since the last failure, and that is quiet ago.
func (w *writer) endOutage(quiet time.Duration) {
	if w.outage == nil || !w.eased || time.Since(w.failed) < quiet {
		return
	}
	o := *w.outage
	w.outage = nil
	w.mu.Lock()
	w.since = time.Time{}
	w.mu.Unlock()
	o.Over, o.Until = true, time.Now()
	if f := w.log.opts.OnOutage; f != nil {
		f(o)
	}
}

// resume sets the timer for rows that are left when no goroutine leads any more. w.mu is locked.
func (w *writer) resume() {
	switch {
	case w.closed || w.isIdle():
	case w.outage != nil:
		w.armed.Store(true) // rows that come now are folded by the retry
		w.timer.Reset(retryEvery)
	case w.log.journal != nil:
		w.armed.Store(true)
		w.timer.Reset(journal.FoldDelay)
	default:
		w.timer.Reset(groupDelay)
	}
}

// isIdle reports whether nothing is left to do. w.mu is locked.
func (w *writer) isIdle() bool {
	return len(w.deferred) == 0 && w.refused == 0 && !w.log.head.Behind && w.outage == nil &&
		(w.log.journal == nil || w.log.journal.Unfolded() == 0)
}

// wake requests a fold, after FoldDelay or at once.
func (w *writer) wake(soon bool) {
	switch {
	case soon && !w.hurried.Swap(true):
		w.timer.Reset(0)
	case !w.armed.Swap(true):
		w.timer.Reset(journal.FoldDelay)
	}
}

// journalFailed begins an outage because the journal does not accept a row: the fold that it requests finds that too.
func (w *writer) journalFailed(err error) {
	if errors.Is(err, journal.ErrClosed) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return
	}
	w.down.Store(true)
	w.timer.Reset(0)
}

// noteRefusals adds the row that counts refused requests to the journal, before the row that ends the session.
func (w *writer) noteRefusals(ctx context.Context) {
	w.mu.Lock()
	n := w.refused
	r := w.refusedRow(n)
	w.mu.Unlock()
	if n == 0 {
		return
	}
	if w.log.journal.Add(ctx, r, true) == nil {
		w.mu.Lock()
		w.refused -= n
		w.noted += n
		w.mu.Unlock()
	}
}

// close commits deferred rows, accepts no more, and returns a *LostError if rows are not in the log.
func (w *writer) close() error {
	if w.log == nil {
		return nil
	}
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	if w.log.journal != nil {
		w.log.journal.Close()
	}
	err := w.await(context.Background(), &pending{barrier: true}, true)
	w.timer.Stop()
	w.endOutage(0)
	w.mu.Lock()
	defer w.mu.Unlock()
	kept := w.log.journal.KeptRows()
	if len(w.deferred) == 0 && w.refused == 0 && w.lost == 0 && kept == 0 {
		return nil
	}
	lost := &LostError{Lost: w.lost, Err: err}
	w.keepAll(lost)
	return lost
}

// keepAll writes all deferred rows to the journal, which nothing else uses any more, and counts what it has. The row
// that counts refused requests comes before the last one, which ends the session.
func (w *writer) keepAll(lost *LostError) {
	rows := w.deferred
	if w.refused > 0 {
		last := max(0, len(rows)-1)
		rows = append(append(append([]*Row(nil), rows[:last]...), w.refusedRow(w.refused)), rows[last:]...)
	}
	j := w.log.journal
	for _, r := range rows {
		switch {
		case j != nil && j.AddLast(r) == nil:
		case r.Reason == ReasonUnavailable && r.Fields["requests"] != nil:
			lost.Refused = w.refused
		default:
			lost.Lost++
		}
	}
	if kept := j.KeptRows(); kept > 0 && j.Gone() {
		lost.Lost += kept
	} else if kept > 0 {
		lost.Kept, lost.Path = kept, j.Path
	}
}
