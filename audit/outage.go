package audit

import (
	"context"
	"fmt"
	"time"
)

// Outage is a period in which the log could not be written.
type Outage struct {
	Since time.Time
	Err   error // of the first commit that failed
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
	Kept    int    // rows in the spill file: the next Open adds them to the log
	Path    string // of the spill file
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
func (w *writer) countRefusal(r Row) {
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

// refusedRow returns the row that counts n refused requests without a row of their own.
func (l *Log) refusedRow(n int) *Row {
	fields := map[string]any{"requests": n}
	if l.outage != nil {
		fields["since"] = l.outage.Since.UTC().Format(timeFormat)
	}
	return &Row{
		ID: NewID(), TS: time.Now(), Event: EventSandboxRejected, SessionID: l.opts.Session,
		Source: SourceRequestBoundary, Decision: DecisionRejected, Reason: ReasonUnavailable, Status: 503, Fields: fields,
	}
}

// beginOutage records that a commit failed, and reports the first failure.
func (w *writer) beginOutage(err error) {
	w.failed, w.eased = time.Now(), false
	if w.outage != nil {
		return
	}
	w.outage = &Outage{Since: w.failed, Err: err}
	if f := w.log.opts.OnOutage; f != nil {
		f(*w.outage)
	}
}

// easeOutage records that a commit succeeded. Others may still fail, so the outage is over only when none has failed
// for retryEvery.
func (w *writer) easeOutage(refused int) {
	w.eased = true
	w.outage.Refused += refused
	w.endOutage(retryEvery)
}

// endOutage ends the outage if a commit has succeeded since the last failure, and that is quiet ago.
func (w *writer) endOutage(quiet time.Duration) {
	if w.outage == nil || !w.eased || time.Since(w.failed) < quiet {
		return
	}
	o := *w.outage
	w.outage = nil
	o.Over, o.Until = true, time.Now()
	if f := w.log.opts.OnOutage; f != nil {
		f(o)
	}
}

// resume sets the timer for rows that are left when no goroutine leads any more. w.mu is locked.
func (w *writer) resume() {
	switch {
	case w.closed || len(w.deferred) == 0 && w.refused == 0 && !w.log.head.behind && w.outage == nil:
	case w.outage != nil:
		w.timer.Reset(retryEvery)
	default:
		w.timer.Reset(groupDelay)
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
	err := w.await(context.Background(), &pending{barrier: true}, true)
	w.timer.Stop()
	w.endOutage(0)
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.deferred) == 0 && w.refused == 0 && w.lost == 0 {
		return nil
	}
	lost := &LostError{Lost: w.lost, Err: err}
	w.keepAll(lost)
	return lost
}

// keepAll writes all deferred rows to the spill file, which nothing else uses any more, and counts them. The row that
// counts refused requests comes before the last one, which ends the session.
func (w *writer) keepAll(lost *LostError) {
	rows := w.deferred
	if w.refused > 0 {
		last := max(0, len(rows)-1)
		rows = append(append(append([]*Row(nil), rows[:last]...), w.log.refusedRow(w.refused)), rows[last:]...)
	}
	for _, r := range rows {
		switch err := w.log.keepLast(r); {
		case err == nil:
			lost.Kept++
			lost.Path = w.log.spill.path
		case r.Reason == ReasonUnavailable && r.Fields["requests"] != nil:
			lost.Refused = w.refused
		default:
			lost.Lost++
		}
	}
}

// keepLast writes a row to the spill file, if there is one.
func (l *Log) keepLast(r *Row) error {
	if l.spill == nil {
		return errNoSpill
	}
	return l.spill.keep(r, l.known)
}
