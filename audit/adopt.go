package audit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// keptAside is what the name of a spill file that is not one begins with, when
// it is out of the way.
const keptAside = "audit.not-a-spill-"

// Adopt adds the rows of spill files of ended sessions to the log, each row
// once, and removes the files. Open does this. A file that another process has
// locked, and one whose rows cannot be committed now, stays as it is.
func (l *Log) Adopt(ctx context.Context) {
	names, err := spillNames(l.path)
	if err != nil {
		return
	}
	for _, name := range names {
		_ = l.adopt(ctx, name) // it stays, and commands that read the log show it
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

// addSpilled commits, in one transaction, the rows of a spill file that the log
// does not have: the process that wrote it, or one that adopted it, may have
// been killed between its commit and the removal of the file.
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
	// What was committed before the spill has to be there still.
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

// dropCommitted removes from rows, which are by their ids, those that the log
// has behind the row seq.
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

// setAside records that a spill file cannot be trusted, and renames it so that
// it is kept and never read.
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
