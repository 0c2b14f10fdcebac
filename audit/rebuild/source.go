package rebuild

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"

	"github.com/ALRubinger/aileron/audit/internal/table"
)

// source opens the kept file for reading. If its first page is damaged, it opens a copy with the first page of an
// empty log.
func (r *recovery) source(ctx context.Context) (db *sql.DB, done func(), err error) {
	path, scratch := r.kept, r.work+".source"
	db, err = openKept(ctx, path)
	if table.IsDamage(err) {
		if err := r.transplant(scratch); err != nil {
			return nil, nil, err
		}
		path = scratch
		db, err = openKept(ctx, path)
	}
	done = func() {
		_ = db.Close()
		_ = os.Remove(path + "-shm")
		_, _ = os.Remove(scratch), os.Remove(scratch+"-wal")
	}
	if err != nil {
		return nil, nil, err
	}
	return db, done, nil
}

func openKept(ctx context.Context, path string) (*sql.DB, error) {
	mode := "?mode=ro"
	if _, err := os.Stat(path + "-wal"); err != nil {
		mode = "?mode=ro&immutable=1" // SQLite would have to create it
	}
	db, err := sql.Open("sqlite", table.Dsn(path)+mode)
	if err != nil {
		return nil, err
	}
	rows, err := db.QueryContext(ctx, "SELECT "+table.Columns+" FROM events LIMIT 0") //nolint:gosec // a constant
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, rows.Close()
}

// transplant copies the kept file to scratch, and replaces its first page by that of an empty log.
func (r *recovery) transplant(scratch string) error {
	for _, suffix := range []string{"", "-wal"} {
		_ = os.Remove(scratch + suffix)
		err := copyWhole(r.kept+suffix, scratch+suffix)
		if err != nil && (suffix == "" || !errors.Is(err, os.ErrNotExist)) {
			return err
		}
	}
	first, err := emptyFirstPage(scratch + ".empty")
	if err != nil {
		return err
	}
	first[sizeValidAt]++ // SQLite then ignores the number of pages in the header
	if _, err := os.Stat(scratch + "-wal"); err == nil {
		first[18], first[19] = 2, 2 // WAL
	}
	f, err := os.OpenFile(scratch, os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(first, 0)
	return errors.Join(err, f.Close())
}

// emptyFirstPage returns the first page of a log without rows.
func emptyFirstPage(scratch string) ([]byte, error) {
	defer os.Remove(scratch)
	db, err := sql.Open("sqlite", table.Dsn(scratch))
	if err != nil {
		return nil, err
	}
	_, err = db.Exec(table.Schema)
	if err = errors.Join(err, db.Close()); err != nil {
		return nil, err
	}
	raw, err := os.ReadFile(scratch)
	if err != nil || len(raw) < pageSize {
		return nil, fmt.Errorf("make an empty log: %d bytes: %w", len(raw), err)
	}
	return raw[:pageSize], nil
}

// copyWhole copies a file to one that does not exist.
func copyWhole(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = out.ReadFrom(in)
	return errors.Join(err, out.Close())
}
