package audit

import (
	"errors"
	"fmt"

	"github.com/ALRubinger/aileron/audit/internal/journal"
	"github.com/ALRubinger/aileron/audit/internal/table"
)

// The leader of a session's writer folds the journal: it moves the rows to the database, in transactions that also
// record how far they got.

// keptSlab is how many rows collect has memory for while there is nothing to fold.
const keptSlab = 512

// fold moves the rows of the journal to the database, and reports whether there were any. The error is that of the
// first commit that failed: the rows behind are still in the journal.
func (w *writer) fold() (any bool, err error) {
	j := w.log.journal
	if j == nil {
		return false, nil
	}
	w.armed.Store(false)
	w.hurried.Store(false)
	if found := j.Elsewhere(); found != "" {
		if err := w.log.replaceJournal(found, true); err != nil && j.Gone() {
			return false, w.unfold(fmt.Errorf("the journal was removed: %w", err))
		}
	}
	for ; ; any = true {
		if err := w.pace.refusal(); err != nil && !w.log.lockWait.Last.Load() {
			return any, w.unfold(err)
		}
		rows, err := j.Collect()
		if errors.Is(err, journal.ErrNoFrame) {
			err = w.log.replaceJournal(journal.ChangedAt(j.Folded, err).Error(), false)
		}
		if err != nil {
			return any, w.unfold(err)
		}
		if len(rows) == 0 {
			return any, w.foldedAll()
		}
		err = w.log.commitOrFail(rows, table.Extra{States: statesOf(j, j.Ends[len(rows)-1])})
		if err != nil && !table.IsTransient(err) {
			err = w.salvageFold(rows, err)
		}
		if err != nil {
			return any, w.uncommitted(err)
		}
		w.pace.ended()
		j.Advance(len(rows), w.log.known)
	}
}

// foldedAll ends a fold that left no row. The journal must be able to accept rows too.
func (w *writer) foldedAll() error {
	if err := w.log.journal.Probe(); err != nil {
		return w.unfold(err)
	}
	j := w.log.journal
	j.Spilled = false
	if len(j.Slab) > keptSlab {
		j.Slab, j.Group, j.Ends = j.Slab[:keptSlab:keptSlab], nil, nil
	}
	w.down.Store(false)
	w.locked.Store(false)
	return nil
}

// unfold begins an outage, in which the rows stay in the journal and no request is admitted.
func (w *writer) unfold(err error) error {
	w.down.Store(true)
	w.keepRows(err, false)
	return err
}

// uncommitted is unfold for the error of a commit. If another process has locked the database, requests are admitted:
// their rows are durable in the journal, and what the lock delays is bounded by it.
func (w *writer) uncommitted(err error) error {
	if !IsLocked(err) {
		return w.unfold(err)
	}
	w.locked.Store(true)
	w.keepRows(err, true)
	return err
}

// keepRows begins an outage, and wakes what waits for a fold.
func (w *writer) keepRows(err error, admitting bool) {
	j := w.log.journal
	j.Spilled = true
	w.beginOutage(err, admitting)
	j.Mu.Lock()
	j.Tried()
	j.Mu.Unlock()
}

// salvageFold commits rows one by one after their commit failed because of a row, see salvage. If it returns an error,
// the rows that are in the database or can never be are not tried again, and none is before the pace allows it.
func (w *writer) salvageFold(rows []*Row, cause error) error {
	if !w.pace.due() {
		w.pace.hold(cause)
		return cause
	}
	j := w.log.journal
	failed, writable := 0, false
	defer func() {
		if w.pace.tried(writable); !writable {
			w.pace.hold(cause)
		}
	}()
	for i := range rows {
		err := w.log.commitOrFail(rows[i:i+1:i+1], table.Extra{States: statesOf(j, j.Ends[i])})
		switch {
		case err == nil:
			writable = true
		case !table.IsTransient(err):
			failed++
		case writable:
			w.lose(failed)
			j.Advance(i, w.log.known)
			return err
		default:
			return cause
		}
	}
	if !writable {
		return cause
	}
	w.lose(failed)
	return nil
}

// statesOf returns what the database records with rows up to end.
func statesOf(j *journal.Journal, end int64) []table.JournalState {
	all := []table.JournalState{{Name: j.Name(), Folded: end, State: table.JournalOpen}}
	if j.Former != "" {
		all = append(all, table.JournalState{Name: j.Former, State: table.JournalRemoved})
	}
	return all
}
