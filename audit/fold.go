package audit

import (
	"errors"
	"fmt"
)

// The leader of a session's writer folds the journal: it moves the rows to the database, in transactions that also
// record how far they got.

const (
	// maxFold is how many rows of a journal share one transaction, and foldBytes about how many bytes they have.
	maxFold   = 4096
	foldBytes = 4 << 20
	// keptSlab is how many rows collect has memory for while there is nothing to fold.
	keptSlab = 512
)

// journalState is a row of the table journals.
type journalState struct {
	name   string
	folded int64 // up to where the journal is in the database
	state  string
}

// journalSchema creates the table of the journals that have rows, or had some when a session last recorded it.
const journalSchema = `

CREATE TABLE IF NOT EXISTS journals (
  name TEXT PRIMARY KEY, folded INTEGER NOT NULL, state TEXT NOT NULL
) STRICT, WITHOUT ROWID`

const (
	setJournal = "INSERT INTO journals (name, folded, state) VALUES (?, ?, ?) " +
		"ON CONFLICT (name) DO UPDATE SET folded = excluded.folded, state = excluded.state"
	dropJournal   = "DELETE FROM journals WHERE name = ?"
	selectJournal = "SELECT folded, state FROM journals WHERE name = ?"
)

// The states of a journal. The row of a journal that has no rows left is removed.
const (
	journalOpen    = "open"
	journalAside   = "aside" // it was changed, and is kept as evidence
	journalRemoved = ""
)

// fold moves the rows of the journal to the database, and reports whether there were any. The error is that of the
// first commit that failed: the rows behind are still in the journal.
func (w *writer) fold() (any bool, err error) {
	j := w.log.journal
	if j == nil {
		return false, nil
	}
	w.armed.Store(false)
	w.hurried.Store(false)
	if found := j.elsewhere(); found != "" {
		if err := w.log.replaceJournal(found, true); err != nil && j.gone() {
			return false, w.unfold(fmt.Errorf("the journal was removed: %w", err))
		}
	}
	for ; ; any = true {
		if err := w.pace.refusal(); err != nil && !w.log.lockWait.last.Load() {
			return any, w.unfold(err)
		}
		rows, err := j.collect()
		if errors.Is(err, errNoFrame) {
			err = w.log.replaceJournal(changedAt(j.folded, err).Error(), false)
		}
		if err != nil {
			return any, w.unfold(err)
		}
		if len(rows) == 0 {
			return any, w.foldedAll()
		}
		err = w.log.commitOrFail(rows, j.states(j.ends[len(rows)-1]))
		if err != nil && !isTransient(err) {
			err = w.salvageFold(rows, err)
		}
		if err != nil {
			return any, w.uncommitted(err)
		}
		w.pace.ended()
		j.advance(len(rows), w.log.known)
	}
}

// foldedAll ends a fold that left no row. The journal must be able to accept rows too.
func (w *writer) foldedAll() error {
	if err := w.log.journal.probe(); err != nil {
		return w.unfold(err)
	}
	j := w.log.journal
	j.spilled = false
	if len(j.slab) > keptSlab {
		j.slab, j.group, j.ends = j.slab[:keptSlab:keptSlab], nil, nil
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
	j.spilled = true
	w.beginOutage(err, admitting)
	j.mu.Lock()
	j.tried()
	j.mu.Unlock()
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
		err := w.log.commitOrFail(rows[i:i+1:i+1], j.states(j.ends[i]))
		switch {
		case err == nil:
			writable = true
		case !isTransient(err):
			failed++
		case writable:
			w.lose(failed)
			j.advance(i, w.log.known)
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

// states returns what the database records with rows up to end.
func (j *journal) states(end int64) []journalState {
	all := []journalState{{name: j.name(), folded: end, state: journalOpen}}
	if j.former != "" {
		all = append(all, journalState{name: j.former, state: journalRemoved})
	}
	return all
}
