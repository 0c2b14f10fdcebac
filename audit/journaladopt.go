package audit

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// journalKeptAside is the prefix of the new name of a journal that cannot be trusted.
const journalKeptAside = "audit.not-a-journal-"

// maxAdopt is how many rows of a journal that a session left share one transaction.
const maxAdopt = 512

// startJournal creates the journal of this session.
func (l *Log) startJournal() (err error) {
	if l.journal, err = createJournal(l.path, l.opts.Session, l.head.writer, l.known); err != nil {
		l.journal = nil
		return err
	}
	l.journal.sync = l.opts.Durability == "full"
	l.journal.wake = l.writer.wake
	l.journal.failed = func(rows []*Row) {
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
	if !empty && j.keptRows() > 0 {
		_ = j.file.Close()
		return
	}
	if j.registered {
		// Before the file: a journal that the database knows must exist.
		if l.commitOrFail(nil, []journalState{{name: j.name(), state: journalRemoved}}) != nil {
			_ = j.file.Close()
			return // the next Open removes both
		}
	}
	j.remove()
}

// Adopt adds the rows of the journals of sessions that are gone to the log, each row once, and removes the files. It
// records that a journal is missing. Open calls it. A file that another process has locked stays, and so does one whose
// rows cannot be committed now.
func (l *Log) Adopt(ctx context.Context) {
	names, err := journalsBeside(l.path)
	if err != nil {
		return
	}
	for _, name := range names {
		_ = l.adoptJournal(ctx, name) // the file stays, and readers of the log show its rows
	}
	_ = l.reportMissing(ctx)
}

func (l *Log) adoptJournal(ctx context.Context, path string) error {
	f, err := openJournal(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := lockNamed(f, path); err != nil {
		return err
	}
	j, err := readJournal(f)
	if errors.Is(err, errNoJournal) {
		j = &journalFile{name: filepath.Base(path), session: journalSession(path)}
		return l.setJournalAside(ctx, path, j, nil, err)
	}
	if err != nil {
		return err
	}
	state, known, err := journalStateOf(ctx, l.database(), j.name)
	switch {
	case err != nil:
		return err
	case state.state == journalAside:
		return os.Rename(path, filepath.Join(filepath.Dir(path), journalKeptAside+NewID()))
	case !known:
		state.folded = j.mark.folded
	}
	again := !known // rows may be in the log all the same
	for done := false; !done; {
		rows, err := j.rows(state.folded, maxAdopt)
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, errNoFrame) {
			return err
		}
		if again {
			if rows, err = l.withoutCommitted(ctx, j.mark.after, rows, err); err != nil && !isEnd(err) {
				return err
			}
		}
		if errors.Is(err, errNoFrame) {
			return l.setJournalAside(ctx, path, j, rows, changedAt(j.frames.at, err))
		}
		next := journalState{name: j.name, folded: j.frames.at, state: journalOpen}
		if done = errors.Is(err, io.EOF); done {
			next.state = journalRemoved
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
func isEnd(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, errNoFrame) }

// rows returns the next rows behind folded, at most n, marked as late. With io.EOF or errNoFrame they are the last.
func (j *journalFile) rows(folded int64, n int) (rows []*Row, err error) {
	for len(rows) < n {
		r, err := j.row()
		if err != nil {
			return rows, err
		}
		if j.frames.at <= folded {
			continue
		}
		if err := r.setField(fieldSpilled, true); err != nil {
			return rows, errNoFrame
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// withoutCommitted returns the rows that the log does not have, for a journal that its database does not know: it was
// recovered, or replaced. If the log does not have the row that the journal follows, the event that reports this
// precedes them. The error is end, or one of reading the log.
func (l *Log) withoutCommitted(ctx context.Context, after head, rows []*Row, end error) ([]*Row, error) {
	missing := map[string]*Row{}
	for _, r := range rows {
		missing[r.ID] = r
	}
	if err := l.dropCommitted(ctx, after.seq, missing); err != nil {
		return nil, err
	}
	var left []*Row
	for _, r := range rows {
		if missing[r.ID] != nil {
			left = append(left, r)
		}
	}
	var b *breach
	if err := l.has(ctx, after); err != nil && !errors.As(err, &b) {
		return nil, err
	}
	if b != nil && len(left) > 0 {
		found := fmt.Sprintf("the log that a journal follows: %s", b.found)
		left = append([]*Row{l.breachRow([]breach{{reason: b.reason, expected: b.expected, found: found}})}, left...)
	}
	return left, end
}

// dropCommitted removes from rows, keyed by id, those that the log has after row seq.
func (l *Log) dropCommitted(ctx context.Context, seq int64, rows map[string]*Row) error {
	found, err := l.database().QueryContext(ctx, "SELECT id FROM events WHERE seq > ?", seq)
	if err != nil {
		return fmt.Errorf("read the audit log: %w", err)
	}
	defer found.Close()
	for found.Next() {
		var id string
		if err := found.Scan(&id); err != nil {
			return fmt.Errorf("read the audit log: %w", err)
		}
		delete(rows, id)
	}
	return found.Err()
}

// setJournalAside commits the rows of a journal before its first fault, records the fault, and renames the file: it is
// kept as evidence and never read again.
func (l *Log) setJournalAside(ctx context.Context, path string, j *journalFile, rows []*Row, fault error) error {
	r := &Row{ID: NewID(), Event: EventBroken, SessionID: j.session, Source: SourceCLI, Reason: reasonJournalChanged}
	aside := journalKeptAside + r.ID
	r.Fields = map[string]any{"found": fault.Error(), "file": j.name, "offset": j.frames.at, "kept_as": aside}
	err := l.appendAll(ctx, append(rows, r), journalState{name: j.name, folded: j.frames.at, state: journalAside})
	if err != nil {
		return err
	}
	err = os.Rename(path, filepath.Join(filepath.Dir(path), aside))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return l.appendAll(ctx, nil, journalState{name: j.name, state: journalRemoved})
}

// reportMissing records the journals that the database knows and that do not exist.
func (l *Log) reportMissing(ctx context.Context) error {
	names, err := openJournals(ctx, l.database())
	if err != nil {
		return err
	}
	for _, name := range names {
		if _, err := os.Lstat(filepath.Join(filepath.Dir(l.path), name)); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		// A session removes the row before the file: look again.
		state, known, err := journalStateOf(ctx, l.database(), name)
		if err != nil || !known {
			continue
		}
		r := &Row{Event: EventBroken, SessionID: journalSession(name), Source: SourceCLI, Reason: reasonJournalChanged}
		r.Fields = map[string]any{"found": foundMissing, "file": name, "offset": state.folded}
		if err := l.appendAll(ctx, []*Row{r}, journalState{name: name, state: journalRemoved}); err != nil {
			return err
		}
	}
	return nil
}

// openJournals returns the names of the journals that the database knows.
func openJournals(ctx context.Context, db *sql.DB) (names []string, err error) {
	rows, err := db.QueryContext(ctx, "SELECT name FROM journals WHERE state = ?", journalOpen)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		if journalSession(name) != "" { // it becomes part of a path
			names = append(names, name)
		}
	}
	return names, rows.Err()
}

// journalStateOf returns what the database knows about a journal.
func journalStateOf(ctx context.Context, db *sql.DB, name string) (s journalState, known bool, err error) {
	s.name = name
	err = db.QueryRowContext(ctx, selectJournal, name).Scan(&s.folded, &s.state)
	if errors.Is(err, sql.ErrNoRows) || noTable(err) { // it is being created
		return s, false, nil
	}
	return s, err == nil, err
}
