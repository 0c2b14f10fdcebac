package audit

import (
	"context"
	"fmt"
	"time"
)

// Outage is a time in which the log could not be written.
type Outage struct {
	Since time.Time
	Err   error // of the first commit that failed
	// Over reports that the log can be written again. The other fields are set
	// then.
	Over    bool
	Until   time.Time
	Refused int // requests that were refused without a row of their own
}

// ReasonUnavailable is the Row.Reason of a denial because the log could not be
// written, and of the row that counts those without a row.
const ReasonUnavailable = "audit_unavailable"

// retryEvery is how long rows that could not be committed wait before that is
// tried again, when no other row comes.
const retryEvery = time.Second

// LostError is returned by Close when rows are not in the log.
type LostError struct {
	Kept    int    // rows that the spill file holds: the next Open adds them
	Path    string // of the spill file
	Lost    int    // rows that are nowhere
	Refused int    // requests that were refused without a row, and that no row counts
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

func rowCount(n int) string {
	if n == 1 {
		return "1 row is"
	}
	return fmt.Sprintf("%d rows are", n)
}

// Unwrap returns ErrUnavailable and the cause.
func (e *LostError) Unwrap() []error { return []error{ErrUnavailable, e.Err} }

// countRefusal counts the denial of a request that could not be recorded.
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

// refusedRow returns the row that counts n requests which were refused without
// a row of their own.
func (l *Log) refusedRow(n int) *Row {
	fields := map[string]any{"requests": n}
	if l.outage != nil {
		fields["since"] = l.outage.Since.UTC().Format(timeFormat)
	}
	return &Row{ID: NewID(), TS: time.Now(), Event: EventSandboxRejected, SessionID: l.opts.Session, Source: SourceRequestBoundary,
		Decision: DecisionRejected, Reason: ReasonUnavailable, Status: 503, Fields: fields}
}

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

// easeOutage notes that a commit succeeded, which may be one among others that
// fail: the outage is over when none has failed for retryEvery.
func (w *writer) easeOutage(refused int) {
	w.eased = true
	w.outage.Refused += refused
	w.endOutage(retryEvery)
}

// endOutage ends the outage when commits succeed, and none has failed for quiet.
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

// resume arms the timer for what the leader leaves behind when no other follows
// it. w.mu is locked.
func (w *writer) resume() {
	switch {
	case w.closed || len(w.deferred) == 0 && w.refused == 0 && !w.log.head.behind && w.outage == nil:
	case w.outage != nil:
		w.timer.Reset(retryEvery)
	default:
		w.timer.Reset(groupDelay)
	}
}

// close commits what is deferred, accepts no more rows, and returns a *LostError
// when rows are not in the log.
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

// keepAll writes all that is deferred to the spill file, which nothing else uses
// any more, and counts it. The rows that count come before the last one, which
// ends the session.
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
