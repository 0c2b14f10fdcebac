package audit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// The leader of a session's writer folds the journal: it moves the rows to the database, in transactions that also
// record how far they got.

// maxFold is how many rows of a journal share one transaction.
const maxFold = 512

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
		if err != nil && !isTransient(err) && time.Since(w.salvaged) > retryEvery {
			err = w.salvageFold(rows, err)
		}
		if err != nil {
			return any, w.unfold(err)
		}
		j.advance(len(rows), w.log.known)
	}
}

// foldedAll ends a fold that left no row. The journal must be able to accept rows too.
func (w *writer) foldedAll() error {
	if err := w.log.journal.probe(); err != nil {
		return w.unfold(err)
	}
	w.log.journal.spilled = false
	w.log.journal.behind.Store(false)
	w.down.Store(false)
	return nil
}

// unfold begins an outage, in which the rows stay in the journal.
func (w *writer) unfold(err error) error {
	w.log.journal.spilled = true
	w.down.Store(true)
	w.beginOutage(err)
	return err
}

// salvageFold commits rows one by one after their commit failed because of a row, see salvage. If it returns an error,
// the rows that are in the database or can never be are not tried again.
func (w *writer) salvageFold(rows []*Row, cause error) error {
	w.salvaged = time.Now()
	j := w.log.journal
	failed, writable := 0, false
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

// collect reads the next rows that are to be folded. They are valid until the next call.
func (j *journal) collect() ([]*Row, error) {
	j.mu.Lock()
	frames := frameReader{file: j.file, at: j.folded, end: j.written, buf: j.buf[:0]}
	sum, late := j.sum, time.Since(j.oldest)
	j.mu.Unlock()
	if j.slab == nil && frames.at < frames.end {
		j.slab, j.raws = make([]Row, maxFold), make([]rawRow, maxFold)
	}
	j.group, j.ends = j.group[:0], j.ends[:0]
	for len(j.group) < maxFold {
		body, err := frames.next()
		if errors.Is(err, io.EOF) {
			break
		}
		r, raw := &j.slab[len(j.group)], &j.raws[len(j.group)]
		if err == nil && r.parse(string(body), raw) != nil {
			err = errNoFrame
		}
		if errors.Is(err, errNoFrame) && len(j.group) > 0 {
			break // the rows before are folded first
		}
		if err != nil {
			return nil, err
		}
		if raw.late = late; j.spilled {
			if err := r.setField(fieldSpilled, true); err != nil {
				return nil, err
			}
		}
		j.group, j.ends = append(j.group, r), append(j.ends, frames.at)
	}
	j.buf = frames.buf
	if frames.at == frames.end && len(j.group) > 0 {
		// The file may have been changed and chained again: the sum in memory cannot be.
		if last, err := frames.sumBefore(); err != nil || [sumSize]byte(last) != sum {
			return nil, errNoFrame
		}
	}
	return j.group, nil
}

// advance records that the first n rows of collect are in the database, of which after is the newest row.
func (j *journal) advance(n int, after head) {
	end := j.ends[n-1]
	mark := journalMark{folded: end, after: after}
	_, err := j.file.WriteAt(mark.append(make([]byte, 0, 256)), journalMarkAt)
	j.mu.Lock()
	j.folded, j.rows = end, j.rows-n
	j.mu.Unlock()
	if err == nil { // otherwise the table has how far it is folded
		j.release()
	}
}

// probe returns an error if the journal cannot accept rows.
func (j *journal) probe() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.failing && !j.writing {
		if _, err := j.file.WriteAt(make([]byte, frameHead), j.written); err != nil {
			return fmt.Errorf("write the journal: %w", err)
		}
	}
	j.failing = false
	return j.grow(j.written + j.inflight)
}

// gone reports whether the file has no name any more. The rows of a file that was moved with its home are kept.
func (j *journal) gone() bool {
	var st unix.Stat_t
	return unix.Fstat(int(j.file.Fd()), &st) != nil || st.Nlink == 0
}

// replaceJournal creates a new journal, because the old one was removed, replaced or changed, and queues the event that
// reports it. If whole is set, the rows that are not folded yet are moved to the new one; otherwise they are lost, and
// what is left of the old journal is kept as evidence.
func (l *Log) replaceJournal(found string, whole bool) error {
	j := l.journal
	fresh, err := createJournal(l.path, j.session, NewID(), l.known)
	if err != nil {
		return err
	}
	j.pause()
	defer j.resume()
	r := Row{Event: EventBroken, SessionID: l.opts.Session, Source: SourceLauncher, Reason: reasonJournalChanged}
	r.Fields = map[string]any{"file": j.name(), "offset": j.folded, "found": found}
	if !whole {
		r.Fields["lost"] = j.rows
		l.lose(j.rows)
		aside := journalKeptAside + NewID()
		if os.Rename(j.path, filepath.Join(filepath.Dir(j.path), aside)) == nil {
			r.Fields["kept_as"] = aside
		}
	} else if err := j.copyTo(fresh); err != nil {
		fresh.remove()
		return err
	}
	if l.broken == nil {
		l.broken = &r
	} else {
		l.broken.Fields["journal"] = found
	}
	_ = j.file.Close()
	j.adopt(fresh)
	return nil
}

// pause waits until no batch is being written, and keeps others from beginning.
func (j *journal) pause() {
	for {
		j.mu.Lock()
		if !j.writing {
			j.writing = true
			j.mu.Unlock()
			return
		}
		j.mu.Unlock()
		j.flush(context.Background())
	}
}

// resume ends pause, and writes the batch that waits.
func (j *journal) resume() {
	j.mu.Lock()
	_ = j.lead()
}

// copyTo adds the frames that are not folded to another journal. The journal is paused.
func (j *journal) copyTo(fresh *journal) error {
	frames := frameReader{file: j.file, at: j.folded, end: j.written}
	for {
		body, err := frames.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		out := endFrame(append(make([]byte, framePrefix+frameHead), body...), framePrefix)
		sum := fresh.sum
		chainFrames(out, &sum)
		if err := fresh.grow(fresh.written + int64(len(out))); err != nil {
			return err
		}
		if _, err := fresh.file.WriteAt(out[framePrefix:], fresh.written); err != nil {
			return err
		}
		fresh.sum = sum
		fresh.written += int64(len(out) - framePrefix)
		fresh.rows++
	}
}

// adopt makes the file of fresh that of j. The journal is paused.
func (j *journal) adopt(fresh *journal) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.registered && j.former == "" {
		j.former = j.name()
	}
	j.file, j.path, j.info, j.allocated = fresh.file, fresh.path, fresh.info, fresh.allocated
	j.written, j.folded, j.punched = fresh.written, fresh.folded, fresh.punched
	j.rows, j.sum = fresh.rows, fresh.sum
	j.registered, j.failing = false, false
}
