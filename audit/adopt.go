package audit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ALRubinger/aileron/audit/internal/chain"
	"github.com/ALRubinger/aileron/audit/internal/journal"
	"github.com/ALRubinger/aileron/audit/internal/table"
)

// journalKeptAside is the prefix of the new name of a journal that cannot be trusted.
const journalKeptAside = "audit.not-a-journal-"

// maxAdopt is how many rows of a journal that a session left share one transaction.
const maxAdopt = 512

// startJournal creates the journal of this session.
func (l *Log) startJournal() (err error) {
	if l.journal, err = journal.Create(l.path, l.opts.Session, l.head.Writer, l.known); err != nil {
		l.journal = nil
		return err
	}
	l.journal.Sync = l.opts.Durability == "full"
	l.journal.Wake = l.writer.wake
	l.journal.Failed = func(rows []*Row) {
		l.down.Store(true)
		for _, r := range rows {
			if l.postpone(context.Background(), *r) != nil {
				l.lose(1)
			}
		}
	}
	return nil
}

// endJournal removes the journal of this session, unless it has rows that are not in the database.
func (l *Log) endJournal(empty bool) {
	j := l.journal
	if !empty && j.KeptRows() > 0 {
		_ = j.File.Close()
		return
	}
	if j.Registered {
		// Before the file: a journal that the database knows must exist.
		removed := table.JournalState{Name: j.Name(), State: table.JournalRemoved}
		if l.commitOrFail(nil, table.Extra{States: []table.JournalState{removed}}) != nil {
			_ = j.File.Close()
			return // the next Open removes both
		}
	}
	j.Remove()
}

// Adopt adds the rows of the journals of sessions that are gone to the log, each row once, and removes the files. It
// records that a journal is missing. Open calls it. A file that another process has locked stays, and so does one whose
// rows cannot be committed now.
func (l *Log) Adopt(ctx context.Context) {
	names, err := journal.Beside(l.path)
	if err != nil {
		return
	}
	for _, name := range names {
		_ = l.adoptJournal(ctx, name) // the file stays, and readers of the log show its rows
	}
	_ = l.reportMissing(ctx)
}

func (l *Log) adoptJournal(ctx context.Context, path string) error {
	f, err := journal.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := journal.LockNamed(f, path); err != nil {
		return err
	}
	j, err := journal.Read(f, plausible)
	if errors.Is(err, journal.ErrNoJournal) {
		j = &journal.File{Name: filepath.Base(path), Session: journal.SessionOf(path)}
		return l.setJournalAside(ctx, path, j, nil, err)
	}
	if err != nil {
		return err
	}
	state, known, err := table.JournalStateOf(ctx, l.db.SQL(), j.Name)
	switch {
	case err != nil:
		return err
	case state.State == table.JournalAside:
		return os.Rename(path, filepath.Join(filepath.Dir(path), journalKeptAside+NewID()))
	case !known:
		state.Folded = j.Mark.Folded
	}
	again := !known // rows may be in the log all the same
	for done := false; !done; {
		rows, err := j.Rows(state.Folded, maxAdopt)
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, journal.ErrNoFrame) {
			return err
		}
		if again {
			if rows, err = l.withoutCommitted(ctx, j.Mark.After, rows, err); err != nil && !isEnd(err) {
				return err
			}
		}
		if errors.Is(err, journal.ErrNoFrame) {
			return l.setJournalAside(ctx, path, j, rows, journal.ChangedAt(j.Frames.At, err))
		}
		next := table.JournalState{Name: j.Name, Folded: j.Frames.At, State: table.JournalOpen}
		if done = errors.Is(err, io.EOF); done {
			next.State = table.JournalRemoved
			if !known && len(rows) == 0 {
				break
			}
		}
		if err := l.appendAll(ctx, rows, next); err != nil {
			return err
		}
		known = true
	}
	return os.Remove(path)
}

// isEnd reports whether err means that no more rows can be read.
func isEnd(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, journal.ErrNoFrame) }

// withoutCommitted returns the rows that the log does not have, for a journal that its database does not know: it was
// recovered, or replaced. If the log does not have the row that the journal follows, the event that reports this
// precedes them. The error is end, or one of reading the log.
func (l *Log) withoutCommitted(ctx context.Context, after chain.Head, rows []*Row, end error) ([]*Row, error) {
	missing := map[string]*Row{}
	for _, r := range rows {
		missing[r.ID] = r
	}
	if err := l.db.IdsAfter(ctx, after.Seq, func(id string) { delete(missing, id) }); err != nil {
		return nil, err
	}
	var left []*Row
	for _, r := range rows {
		if missing[r.ID] != nil {
			left = append(left, r)
		}
	}
	var b *chain.Breach
	if err := l.has(ctx, after); err != nil && !errors.As(err, &b) {
		return nil, err
	}
	if b != nil && len(left) > 0 {
		found := fmt.Sprintf("the log that a journal follows: %s", b.Found)
		left = append([]*Row{l.breachRow([]chain.Breach{{Reason: b.Reason, Expected: b.Expected, Found: found}})}, left...)
	}
	return left, end
}

// setJournalAside commits the rows of a journal before its first fault, records the fault, and renames the file: it is
// kept as evidence and never read again.
func (l *Log) setJournalAside(ctx context.Context, path string, j *journal.File, rows []*Row, fault error) error {
	r := &Row{ID: NewID(), Event: EventBroken, SessionID: j.Session, Source: SourceCLI,
		Reason: chain.ReasonJournalChanged}
	aside := journalKeptAside + r.ID
	r.Fields = map[string]any{"found": fault.Error(), "file": j.Name, "offset": j.Frames.At, "kept_as": aside}
	state := table.JournalState{Name: j.Name, Folded: j.Frames.At, State: table.JournalAside}
	err := l.appendAll(ctx, append(rows, r), state)
	if err != nil {
		return err
	}
	err = os.Rename(path, filepath.Join(filepath.Dir(path), aside))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return l.appendAll(ctx, nil, table.JournalState{Name: j.Name, State: table.JournalRemoved})
}

// reportMissing records the journals that the database knows and that do not exist.
func (l *Log) reportMissing(ctx context.Context) error {
	names, err := table.OpenJournals(ctx, l.db.SQL())
	if err != nil {
		return err
	}
	for _, name := range names {
		if journal.SessionOf(name) == "" { // it becomes part of a path
			continue
		}
		if _, err := os.Lstat(filepath.Join(filepath.Dir(l.path), name)); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		// A session removes the row before the file: look again.
		state, known, err := table.JournalStateOf(ctx, l.db.SQL(), name)
		if err != nil || !known {
			continue
		}
		r := &Row{Event: EventBroken, SessionID: journal.SessionOf(name), Source: SourceCLI,
			Reason: chain.ReasonJournalChanged}
		r.Fields = map[string]any{"found": chain.FoundMissing, "file": name, "offset": state.Folded}
		if err := l.appendAll(ctx, []*Row{r}, table.JournalState{Name: name, State: table.JournalRemoved}); err != nil {
			return err
		}
	}
	return nil
}

// plausible reports whether a row can be one of this package.
func plausible(r *Row) bool {
	_, isID := chain.IdTime(r.ID)
	return isID && !r.TS.IsZero() && IsEvent(r.Event)
}

// replaceJournal creates a new journal, because the old one was removed, replaced or changed, and queues the event that
// reports it. If whole is set, the rows that are not folded yet are moved to the new one; otherwise they are lost, and
// what is left of the old journal is kept as evidence.
func (l *Log) replaceJournal(found string, whole bool) error {
	j := l.journal
	fresh, err := journal.Create(l.path, j.Session, NewID(), l.known)
	if err != nil {
		return err
	}
	j.Pause()
	defer j.Resume()
	r := Row{Event: EventBroken, SessionID: l.opts.Session, Source: SourceLauncher, Reason: chain.ReasonJournalChanged}
	r.Fields = map[string]any{"file": j.Name(), "offset": j.Folded, "found": found}
	if !whole {
		r.Fields["lost"] = j.Rows
		l.lose(j.Rows)
		aside := journalKeptAside + NewID()
		if os.Rename(j.Path, filepath.Join(filepath.Dir(j.Path), aside)) == nil {
			r.Fields["kept_as"] = aside
		}
	} else if err := j.CopyTo(fresh); err != nil {
		fresh.Remove()
		return err
	}
	if l.broken == nil {
		l.broken = &r
	} else {
		l.broken.Fields["journal"] = found
	}
	_ = j.File.Close()
	j.Adopt(fresh)
	return nil
}
