package audit

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
)

// Recovery is what Recover did.
type Recovery struct {
	Needed  bool     `json:"needed"`            // false: every row can be read, and nothing was done
	Rows    int64    `json:"rows"`              // that the log has, without the one that reports the recovery
	Lost    int64    `json:"lost"`              // numbers of rows that the old log had, and the new one has not
	Missing []string `json:"missing,omitempty"` // their ranges, such as "213-220"; at most maxRanges
	Kept    string   `json:"kept,omitempty"`    // the name of the old file
}

// maxRanges bounds the ranges of lost rows that are named.
const maxRanges = 32

// ErrInUse is returned by Recover while another process uses the log.
var ErrInUse = errors.New("another process uses the audit log")

// Recover puts a new database into the place of a damaged one at path. It
// copies every row that can be read, byte for byte, in order and with its
// number and hashes, and adds EventRecovered, which names the old file and the
// rows that are lost. The old file is kept beside it under a name of its own.
// audit.head and the witness stay as they are: what they name and the new log
// does not have is found by Verify as before. busy is asked, with the log
// locked, whether a session uses it.
//
// A recovery that is interrupted leaves the old log, and is done anew by the
// next call.
func Recover(ctx context.Context, path string, opts Options, busy func() error) (Recovery, error) {
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
	// Opening the log compares it with audit.head: what is lost is reported by
	// EventBroken, and marked for ever.
	l, err := Open(path, opts)
	if err != nil {
		return r.done, err
	}
	return r.done, l.Close()
}

func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// recovery is one Recover.
type recovery struct {
	path, work string
	kept       string // the path of the old file
	done       Recovery
}

// lock keeps other recoveries away, and processes that begin to write: these
// read audit.head first.
func (r *recovery) lock() (unlock func(), err error) {
	var open []*os.File
	unlock = func() {
		for _, f := range open {
			_ = f.Close()
		}
	}
	for _, path := range []string{filepath.Dir(r.path), newHeadFile(r.path).path} {
		f, err := os.Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // it is not created: that it is missing is a finding
		}
		if err == nil {
			open = append(open, f)
			err = flock(f, unix.LOCK_EX, busyTimeout)
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

func (r *recovery) run(ctx context.Context) error {
	if err := checkSchema(r.path); err != nil {
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
	for _, suffix := range append(sidecars[:], "") {
		_ = os.Remove(r.work + suffix) // of a recovery that was interrupted
	}
	if err := r.copy(ctx); err != nil {
		return err
	}
	return r.replace()
}

// isDamagedAnywhere reports whether a row of the log at path cannot be read.
func isDamagedAnywhere(ctx context.Context, path string) (bool, error) {
	db, err := sql.Open("sqlite", dsn(path)+"?mode=ro&_pragma=busy_timeout(2000)")
	if err != nil {
		return false, err
	}
	defer db.Close()
	var verdict string
	err = db.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&verdict)
	if isDamage(err) || err == nil && verdict != "ok" {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	var rows int64
	err = db.QueryRowContext(ctx, "SELECT count(*) FROM events").Scan(&rows)
	if isDamage(err) {
		return true, nil // there is no such table
	}
	return false, err
}

// keep links the old files to a name of their own. They are at path as well
// until the new database takes their place: a process that is killed meanwhile
// loses nothing.
func (r *recovery) keep() error {
	kept, err := r.keptBefore()
	if err != nil {
		return err
	}
	if kept != "" { // a recovery was interrupted: its name has the write-ahead log too
		r.kept = kept
		r.done.Kept = filepath.Base(kept)
		return nil
	}
	stamp := r.path + ".damaged-" + time.Now().UTC().Format("20060102T150405.000Z")
	for _, suffix := range append(sidecars[:1:1], "") { // the database last: what has its name is whole
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

// keptBefore returns the name under which the file at path is kept already.
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

// replace puts the new database into the place of the old one. The old
// write-ahead log goes first: SQLite would take it for the new database's.
func (r *recovery) replace() error {
	for _, suffix := range sidecars {
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
