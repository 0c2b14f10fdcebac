package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/filelock"
	"github.com/ALRubinger/aileron/internal/format"
	"github.com/ALRubinger/aileron/internal/hint"
)

// newestFormat is the newest format of session.json that this aileron knows.
const newestFormat = format.First

// description is <home>/sessions/<id>/session.json. A session that has one is
// listed.
type description struct {
	Format  int       `json:"format"`
	ID      string    `json:"id"`
	PID     int       `json:"pid"`
	Agent   string    `json:"agent"`
	Mode    string    `json:"mode"`
	Started time.Time `json:"started"`

	Detached bool `json:"detached,omitempty"`
}

// sessionsDir returns the directory that has one of each session.
func sessionsDir(home string) string { return filepath.Join(home, "sessions") }

// Alive reports whether the process of a session still runs: it holds the lock
// of the session's directory. The id may come from a container's label, so one
// that is no id is not used as a path.
func Alive(home, id string) bool {
	if strings.Trim(id, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		return false
	}
	return filelock.Held(filepath.Join(sessionsDir(home), id, "lock"))
}

// AnyAlive returns the id of a session of a home whose process runs, "" if none does. Unlike [Running], it fails if the
// sessions cannot be listed.
func AnyAlive(home string) (string, error) {
	entries, err := os.ReadDir(sessionsDir(home))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	for _, e := range entries {
		if Alive(home, e.Name()) {
			return e.Name(), nil
		}
	}
	return "", nil
}

// HasDir reports whether a session runs, or was killed and has no end in the log yet.
func HasDir(home, id string) bool {
	if !audit.IsID(id) {
		return false
	}
	_, err := os.Lstat(filepath.Join(sessionsDir(home), id))
	return err == nil
}

// Running returns the ids of the sessions of a home whose processes run.
func Running(home string) (ids []string) {
	entries, _ := os.ReadDir(sessionsDir(home)) // an error: no session has ever run
	for _, e := range entries {
		if Alive(home, e.Name()) {
			ids = append(ids, e.Name())
		}
	}
	return ids
}

// makeDir creates sessions/<id> with a lock that lives as long as the process,
// and opens the control socket before it writes the description that lists the
// session: a session that is listed can be stopped.
func (s *Session) makeDir(context.Context) error {
	dir := filepath.Join(sessionsDir(s.opts.Home), s.id)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return s.homeHint(fmt.Errorf("make the session's directory: %w", err))
	}
	s.dir = dir
	var err error
	if s.lock, err = s.lockNewDir(); err != nil {
		return fmt.Errorf("lock the session's directory: %w", err)
	}
	if err := s.serveControl(); err != nil {
		return err
	}
	return s.describe("session.json")
}

// describe writes the description of the session into a file of its directory.
func (s *Session) describe(name string) error {
	raw, err := json.Marshal(description{
		Format: newestFormat, ID: s.id, PID: os.Getpid(), Agent: s.opts.Agent, Mode: s.opts.Mode, Started: s.start.UTC(),
		Detached: s.opts.Detached,
	})
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(s.dir, name), append(raw, '\n'), 0o600); err != nil {
		return s.homeHint(fmt.Errorf("write the session's description: %w", err))
	}
	return nil
}

// NoteMode replaces [Options.Mode] by the engine that was found, where the session was opened before. It must be called
// before Serve.
func (s *Session) NoteMode(mode string) error {
	if s.opts.Mode == mode {
		return nil
	}
	s.opts.Mode = mode
	if err := s.describe("session.json.new"); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(s.dir, "session.json.new"), filepath.Join(s.dir, "session.json")); err != nil {
		return s.homeHint(fmt.Errorf("write the session's description: %w", err))
	}
	return nil
}

// homeHint adds what can be done about a home that cannot be written.
func (s *Session) homeHint(err error) error {
	return hint.New(err, "check the disk and the rights on %s", s.opts.Home)
}

// lockNewDir locks the directory of this session. Alive, called by another
// process, holds the lock for a moment; and a sweep that came before the lock
// has removed the directory, which is then made again.
func (s *Session) lockNewDir() (*os.File, error) {
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		lock, err := lockDir(s.opts.Locks, s.dir)
		if err == nil {
			return lock, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, fs.ErrNotExist) || time.Now().After(end) {
			return nil, err
		}
		if err := os.MkdirAll(s.dir, 0o700); err != nil {
			return nil, err
		}
	}
}

// lockDir creates the lock of a session's directory and takes it without
// waiting, see [filelock.Locker.Lock].
func lockDir(locks filelock.Locker, dir string) (*os.File, error) {
	return locks.Lock(filepath.Join(dir, "lock"), unix.LOCK_EX|unix.LOCK_NB)
}

// isDescribed reports whether the session of a directory has begun.
func isDescribed(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "session.json"))
	return err == nil
}

// readDescription reads the description in a session's directory. The error
// wraps [fs.ErrNotExist] if there is none, and is a [*format.Error] for a
// session of a newer aileron, which alone may remove the directory.
func readDescription(dir string) (d description, err error) {
	path := filepath.Join(dir, "session.json")
	raw, err := os.ReadFile(path)
	if err != nil {
		return d, fmt.Errorf("read the session's description: %w", err)
	}
	if err := format.CheckJSON(raw, path, newestFormat); err != nil {
		return d, err
	}
	_ = json.Unmarshal(raw, &d) // a process that was killed while it wrote left none
	return d, nil
}

// uncleanCause is the cause of a session whose process could not record one.
const uncleanCause = "the process ended without closing the session"

// lockGrace is how long after its directory a session has its lock at the
// latest. A directory that is younger, and has no description yet, may be that
// of a session that opens just now.
const lockGrace = 2 * time.Second

// Sweep removes the directories of sessions whose process is gone, and records
// what that process could not: that the outcomes of its requests are unknown,
// and that it did not end cleanly. What cannot be swept now is left to the next
// session.
func (s *Session) Sweep(ctx context.Context) {
	entries, err := os.ReadDir(sessionsDir(s.opts.Home))
	if err != nil {
		return
	}
	for _, e := range entries {
		if e.Name() == s.id || Alive(s.opts.Home, e.Name()) {
			continue
		}
		dir := filepath.Join(sessionsDir(s.opts.Home), e.Name())
		info, err := e.Info()
		// The absolute value: a clock that was set back makes the age negative.
		if err != nil || !isDescribed(dir) && time.Since(info.ModTime()).Abs() < lockGrace {
			continue
		}
		s.sweep(ctx, dir)
	}
}

// sweep removes one directory whose session does not hold its lock. It shares
// that lock, which keeps a session from beginning and is none that Alive sees:
// to record the end may take a while, in which the session does not run. Sweeps
// exclude each other by a lock of their own.
func (s *Session) sweep(ctx context.Context, dir string) {
	id := filepath.Base(dir)
	lock, err := s.opts.Locks.Lock(filepath.Join(dir, "lock"), unix.LOCK_SH|unix.LOCK_NB)
	if err != nil {
		return // it has its lock now
	}
	defer lock.Close()
	sweep, err := s.opts.Locks.Lock(filepath.Join(dir, "sweep"), unix.LOCK_EX|unix.LOCK_NB)
	if err != nil {
		return // another sweep has it, or had
	}
	defer sweep.Close()
	// Rows first: a sweep that is killed here is made again.
	if _, err := readDescription(dir); err == nil {
		if s.closeKilled(ctx, id) != nil {
			return
		}
	} else if !errors.Is(err, fs.ErrNotExist) { // not found: it had not begun
		return
	}
	// Then all at once: a session that opens just now must not find half of it.
	swept := filepath.Join(s.dir, "swept-"+id)
	if os.Rename(dir, swept) == nil {
		_ = os.RemoveAll(swept)
	}
}

// errPending is returned for a session some of whose rows wait in its journal.
var errPending = errors.New("rows of the session are not in the audit log yet")

// closeKilled records what a session whose process is gone could not.
func (s *Session) closeKilled(ctx context.Context, id string) error {
	s.audit.Adopt(ctx) // it may have kept outcomes
	pending, err := audit.Spills(filepath.Join(s.opts.Home, "audit.db"))
	if err != nil {
		return fmt.Errorf("%w: %w", errPending, err)
	}
	for _, spill := range pending {
		if spill.Session == id {
			return errPending // another process adds them just now, or the log cannot be written
		}
	}
	_, ended, err := s.audit.CloseKilled(ctx, id)
	if err != nil || ended {
		return err
	}
	_, err = s.audit.Append(ctx, audit.Row{
		Event: audit.EventSessionEnded, SessionID: id, Source: audit.SourceLauncher,
		Reason: "unclean", Fields: map[string]any{"cause": uncleanCause},
	})
	return err
}
