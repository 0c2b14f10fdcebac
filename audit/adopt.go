package audit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// keptAside is the prefix of the new name of a spill file that cannot be trusted.
const keptAside = "audit.not-a-spill-"

// Adopt adds the rows of journals and spill files of ended sessions to the log, each row once, and removes the files.
// Open calls it. A file that another process has locked stays, and so does one whose rows cannot be committed now.
func (l *Log) Adopt(ctx context.Context) {
	l.adoptJournals(ctx)
	names, err := filesBeside(l.path, spillSession)
	if err != nil {
		return
	}
	for _, name := range names {
		_ = l.adopt(ctx, name) // the file stays, and readers of the log show its rows
	}
}

func (l *Log) adopt(ctx context.Context, path string) error {
	f, err := openSpill(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := lockNamed(f, path); err != nil {
		return err
	}
	s := readSpill(f, path)
	if s.Err != nil {
		return l.setAside(ctx, s)
	}
	if err := l.addSpilled(ctx, s); err != nil {
		return err
	}
	return os.Remove(path)
}

// addSpilled commits, in one transaction, the rows of a spill file that the log does not have yet. It may have some
// of them: the process that wrote or adopted the file may have been killed between its commit and the removal of the
// file.
func (l *Log) addSpilled(ctx context.Context, s Spill) error {
	if len(s.Rows) == 0 {
		return nil
	}
	missing := map[string]*Row{}
	for i := range s.Rows {
		missing[s.Rows[i].ID] = &s.Rows[i]
	}
	if err := l.dropCommitted(ctx, s.after.seq, missing); err != nil {
		return err
	}
	var rows []*Row
	for i := range s.Rows {
		if r := missing[s.Rows[i].ID]; r != nil {
			rows = append(rows, r)
		}
	}
	// The row that was committed before the spill must still be in the log.
	if err := l.has(ctx, s.after); err != nil {
		var b *breach
		if !errors.As(err, &b) {
			return err
		}
		found := fmt.Sprintf("the log that %s follows: %s", filepath.Base(s.Path), b.found)
		broken := l.breachRow([]breach{{reason: b.reason, expected: b.expected, found: found}})
		rows = append([]*Row{broken}, rows...)
	}
	return l.appendAll(ctx, rows)
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

// setAside records that a spill file cannot be trusted, and renames it: it is kept as evidence and never read again.
func (l *Log) setAside(ctx context.Context, s Spill) error {
	r := Row{ID: NewID(), Event: EventBroken, SessionID: s.Session, Source: SourceCLI, Reason: reasonSpillChanged}
	aside := keptAside + r.ID
	r.Fields = map[string]any{"found": s.Err.Error(), "file": filepath.Base(s.Path), "kept_as": aside}
	if _, err := l.Append(ctx, r); err != nil {
		return err
	}
	err := os.Rename(s.Path, filepath.Join(filepath.Dir(s.Path), aside))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
