package audit

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/audit/internal/journal"
	"github.com/ALRubinger/aileron/audit/internal/table"
)

// settleTimeout is how long a reader waits until running sessions have folded the rows that it asks for. Tests change
// it.
var settleTimeout = 3 * time.Second

const settleEvery = 5 * time.Millisecond

// Spill is the part of a journal that is not in the database: rows of its session.
type Spill struct {
	Path    string
	Session string
	Rows    []Row
	Err     error // why the journal cannot be read; nil: it can

	live bool    // its session runs
	ends []int64 // of the frames of Rows
}

// Spills returns the journals beside the database at path that have rows which are not in the log, or that cannot be
// read. It waits a moment for running sessions, which fold their journals all the time.
func Spills(path string) ([]Spill, error) {
	names, err := journal.Beside(path)
	if err != nil {
		return nil, err
	}
	return unfolded(path, names), nil
}

// settle makes rows of journals visible to readers: it waits until running sessions have folded theirs, and folds those
// of sessions that are gone. What cannot be folded is returned. Of readers that do so at the same time, those that find
// a journal locked by another one try again.
func settle(path string) []Spill {
	for end := time.Now().Add(settleTimeout); ; time.Sleep(settleEvery) {
		left, _ := Spills(path)
		if !slices.ContainsFunc(left, func(u Spill) bool { return !u.live }) {
			return left
		}
		l, err := Open(path, Options{})
		if err != nil {
			return left // for example, the home is read-only
		}
		_ = l.Close()
		if time.Now().After(end) {
			left, _ = Spills(path)
			return left
		}
	}
}

// unfolded returns the journals that have rows that are not in the database. Those of running sessions are among them
// only if they are not folded within settleTimeout.
func unfolded(path string, names []string) (left []Spill) {
	if len(names) == 0 {
		return nil
	}
	db, err := sql.Open("sqlite", table.Dsn(path)+"?mode=ro&_pragma=busy_timeout(100)")
	if err != nil {
		return nil
	}
	defer db.Close()
	for _, name := range names {
		if u, err := readUnfolded(db, name); err == nil && (len(u.Rows) > 0 || u.Err != nil) {
			left = append(left, u)
		}
	}
	for end := time.Now().Add(settleTimeout); waits(left) && time.Now().Before(end); time.Sleep(settleEvery) {
		left = dropFolded(db, left)
	}
	return left
}

// waits reports whether a running session has rows to fold.
func waits(left []Spill) bool {
	return slices.ContainsFunc(left, func(u Spill) bool { return u.live })
}

// dropFolded drops the rows that are in the database by now.
func dropFolded(db *sql.DB, left []Spill) (still []Spill) {
	for _, u := range left {
		if u.live {
			u.drop(db)
		}
		if len(u.Rows) > 0 || u.Err != nil {
			still = append(still, u)
		}
	}
	return still
}

// drop drops the rows that are in the database by now. If the journal is gone, all are.
func (u *Spill) drop(db *sql.DB) {
	if _, err := os.Lstat(u.Path); errors.Is(err, os.ErrNotExist) {
		u.Rows = nil
		return
	}
	state, known, err := table.JournalStateOf(context.Background(), db, filepath.Base(u.Path))
	if err != nil || !known {
		return
	}
	for len(u.Rows) > 0 && u.ends[0] <= state.Folded {
		u.Rows, u.ends = u.Rows[1:], u.ends[1:]
	}
}

// readUnfolded reads a journal from where it is folded. The error is that of a journal that was removed meanwhile.
func readUnfolded(db *sql.DB, path string) (Spill, error) {
	u := Spill{Path: path, Session: journal.SessionOf(path)}
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return u, err
	}
	defer f.Close()
	u.live = errors.Is(unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB), unix.EWOULDBLOCK)
	_ = unix.Flock(int(f.Fd()), unix.LOCK_UN) // another reader may want to fold it
	j, err := journal.Read(f, plausible)
	if err != nil {
		if !u.live {
			u.Err = err
		}
		return u, nil
	}
	folded := j.Mark.Folded
	if state, known, err := table.JournalStateOf(context.Background(), db, j.Name); err == nil && known {
		folded = max(folded, state.Folded)
	}
	for {
		rows, err := j.Rows(folded, 1)
		for _, r := range rows {
			u.Rows, u.ends = append(u.Rows, *r), append(u.ends, j.Frames.At)
		}
		if errors.Is(err, journal.ErrNoFrame) && !u.live { // a frame of a running session may be incomplete
			u.Err = journal.ChangedAt(j.Frames.At, err)
		}
		if err != nil {
			return u, nil
		}
	}
}

// SettleKilled adds the last rows of killed sessions to the log at path: another session or command, which would do it
// too, may start much later. It is for programs that keep a log open; [OpenReader] and [Follow] do it by themselves.
func SettleKilled(path string) {
	names, err := journal.Beside(path)
	if err != nil {
		return // as long as they cannot be read, the log cannot either
	}
	for _, name := range names {
		if isAbandoned(name) {
			settle(path)
			return
		}
	}
}

// isAbandoned reports whether no process has the journal locked.
func isAbandoned(path string) bool {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	return unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB) == nil
}
