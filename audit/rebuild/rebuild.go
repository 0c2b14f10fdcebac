// Package rebuild replaces a damaged database of the audit log by what can be read of it. [Recover] is all there is to
// call: source.go opens what is left, copy.go copies its rows, and pages.go and record.go find those to which the table
// no longer leads.
package rebuild

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/audit/internal/chain"
	"github.com/ALRubinger/aileron/audit/internal/table"
)

// Recovery describes what Recover did.
type Recovery struct {
	Needed  bool     `json:"needed"`            // false: every row can be read, nothing was done
	Rows    int64    `json:"rows"`              // rows of the new log, without EventRecovered
	Lost    int64    `json:"lost"`              // numbers of rows that only the old log had
	Missing []string `json:"missing,omitempty"` // their ranges, such as "213-220"; at most maxRanges
	Kept    string   `json:"kept,omitempty"`    // the name of the old file
}

// maxRanges bounds the ranges of lost rows that are listed.
const maxRanges = 32

// ErrInUse is returned by Recover while another process uses the log.
var ErrInUse = errors.New("another process uses the audit log")

// Recover replaces a damaged database at path by a new one. It copies every row that can be read, byte for byte, in
// order and with its number and hashes, and adds EventRecovered, which has the name of the old file and the numbers
// of the rows that are lost. The old file is kept beside the new one under that name. audit.head and the witness are
// not changed: Verify still finds what they name and the new log does not have. Recover calls busy, with the log
// locked, and returns its error: it reports whether a session uses the log.
//
// An interrupted recovery leaves the old log in place, and the next call does it again.
func Recover(ctx context.Context, path string, opts audit.Options, busy func() error) (Recovery, error) {
	if _, err := os.Stat(path); err != nil {
		return Recovery{}, fmt.Errorf("recover the audit log: %w", err)
	}
	r := recovery{path: path, work: path + ".recovering"}
	unlock, err := r.lock()
	if err != nil {
		return Recovery{}, fmt.Errorf("recover the audit log: %w", err)
	}
	err = busy()
	if err == nil {
		err = r.run(ctx)
	}
	unlock()
	if err != nil || !r.done.Needed {
		return r.done, wrap("recover the audit log", err)
	}
	// Opening the log compares it with audit.head: lost rows are reported by EventBroken, and marked for ever.
	opts.Wrote = true
	l, err := audit.Open(path, opts)
	if err != nil {
		return r.done, err
	}
	return r.done, l.Close()
}

// wrap adds what failed to err, if there is one.
func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// recovery is the state of one Recover.
type recovery struct {
	path, work string
	kept       string // the path of the old file
	done       Recovery
}

// lock excludes other recoveries, and processes that begin to write: these lock audit.head first.
func (r *recovery) lock() (unlock func(), err error) {
	var open []*os.File
	unlock = func() {
		for _, f := range open {
			_ = f.Close()
		}
	}
	for _, path := range []string{filepath.Dir(r.path), chain.NewHeadFile(r.path).Path} {
		f, err := os.Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // not created: that audit.head is missing is a finding
		}
		if err == nil {
			open = append(open, f)
			err = chain.Flock(f, unix.LOCK_EX, chain.BusyTimeout)
		}
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = ErrInUse
		}
		if err != nil {
			unlock()
			return nil, err
		}
	}
	return unlock, nil
}

// run recovers the log if it is damaged.
func (r *recovery) run(ctx context.Context) error {
	if err := table.CheckSchema(r.path); err != nil {
		return err
	}
	damaged, err := isDamagedAnywhere(ctx, r.path)
	if err != nil || !damaged {
		return err
	}
	r.done.Needed = true
	if err := r.keep(); err != nil {
		return err
	}
	for _, suffix := range append(table.Sidecars[:], "") {
		_ = os.Remove(r.work + suffix) // left by an interrupted recovery
	}
	if err := r.copy(ctx); err != nil {
		return err
	}
	return r.replace()
}

// isDamagedAnywhere reports whether a row of the log at path cannot be read.
func isDamagedAnywhere(ctx context.Context, path string) (bool, error) {
	db, err := sql.Open("sqlite", table.Dsn(path)+"?mode=ro&_pragma=busy_timeout(2000)")
	if err != nil {
		return false, err
	}
	defer db.Close()
	var verdict string
	err = db.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&verdict)
	if table.IsDamage(err) || err == nil && verdict != "ok" {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	var rows int64
	err = db.QueryRowContext(ctx, "SELECT count(*) FROM events").Scan(&rows)
	if table.IsDamage(err) {
		return true, nil // for example, there is no such table
	}
	return false, err
}

// keep links the old files to their new name. They also stay at path until the new database replaces them, so a
// process that is killed meanwhile loses nothing.
func (r *recovery) keep() error {
	kept, err := r.keptBefore()
	if err != nil {
		return err
	}
	if kept != "" { // by an interrupted recovery, with the write-ahead log
		r.kept = kept
		r.done.Kept = filepath.Base(kept)
		return nil
	}
	stamp := r.path + ".damaged-" + time.Now().UTC().Format("20060102T150405.000Z")
	// Link the database last: if its new name exists, the write-ahead log has one too.
	for _, suffix := range append(table.Sidecars[:1:1], "") {
		err := os.Link(r.path+suffix, stamp+suffix)
		if suffix != "" && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("keep the old file: %w", err)
		}
	}
	r.kept, r.done.Kept = stamp, filepath.Base(stamp)
	return nil
}

// keptBefore returns the name under which the file at path has been kept already; "" if there is none.
func (r *recovery) keptBefore() (string, error) {
	now, err := os.Stat(r.path)
	if err != nil {
		return "", err
	}
	names, err := filepath.Glob(globEscape(r.path) + ".damaged-*Z")
	if err != nil {
		return "", err
	}
	for _, name := range names {
		if info, err := os.Stat(name); err == nil && os.SameFile(info, now) {
			return name, nil
		}
	}
	return "", nil
}

// replace replaces the old database by the new one. It removes the old write-ahead log first: SQLite would apply it
// to the new database.
func (r *recovery) replace() error {
	for _, suffix := range table.Sidecars {
		if err := os.Remove(r.path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := os.Rename(r.work, r.path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(r.path))
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}
