package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/ALRubinger/aileron/audit"
)

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

// sweep removes one directory whose session does not hold its lock.
func (s *Session) sweep(ctx context.Context, dir string) {
	id := filepath.Base(dir)
	lock, err := lockDir(s.opts.Locks, dir)
	if err != nil {
		return // it has its lock now, or another sweep does
	}
	defer lock.Close()
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

// errPending is returned for a session some of whose rows wait in a spill file.
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
