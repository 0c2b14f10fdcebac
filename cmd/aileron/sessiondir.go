package main

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
	"github.com/ALRubinger/aileron/internal/format"
	"github.com/ALRubinger/aileron/internal/hint"
)

// makeDir creates sessions/<id> with a lock that lives as long as the process,
// and opens the control socket before the description that lists the session:
// a session that is listed can be stopped.
func (s *session) makeDir() error {
	dir := filepath.Join(s.home, "sessions", s.id)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return hint.New(fmt.Errorf("make the session's directory: %w", err), "check the disk and the rights on %s", s.home)
	}
	s.dir = dir
	var err error
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if s.lock, err = s.app.lockDir(dir); err == nil {
			break
		}
		// A check whether this session is alive holds the lock for a moment,
		// and a sweep that came before the lock has removed the directory.
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, fs.ErrNotExist) || time.Now().After(end) {
			return fmt.Errorf("lock the session's directory: %w", err)
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("lock the session's directory: %w", err)
		}
	}
	if err := s.control(); err != nil {
		return err
	}
	raw, err := json.Marshal(sessionInfo{Format: sessionFormat, ID: s.id, PID: os.Getpid(), Agent: s.agent, Mode: s.mode, Started: s.start.UTC()})
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "session.json"), append(raw, '\n'), 0o600); err != nil {
		return hint.New(fmt.Errorf("write the session's description: %w", err), "check the disk and the rights on %s", s.home)
	}
	return nil
}

// lockDir makes the lock of a session's directory and takes it, see lockFile.
func (a *app) lockDir(dir string) (*os.File, error) {
	return a.lockFile(filepath.Join(dir, "lock"), unix.LOCK_EX|unix.LOCK_NB)
}

// alive reports whether the process of a session still runs: it holds the lock.
// The id may be a container's word for it, and so is looked at first.
func alive(home, id string) bool {
	if strings.Trim(id, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		return false
	}
	f, err := os.Open(filepath.Join(home, "sessions", id, "lock"))
	if err != nil {
		return false
	}
	defer f.Close()
	err = unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	return errors.Is(err, unix.EWOULDBLOCK)
}

// sweepSessions removes the directories of sessions whose process is gone, and
// records what that process could not: the outcomes of its requests, which are
// unknown, and that it did not end cleanly.
func (s *session) sweepSessions(ctx context.Context) {
	entries, err := os.ReadDir(filepath.Join(s.home, "sessions"))
	if err != nil {
		return
	}
	for _, e := range entries {
		if e.Name() == s.id || alive(s.home, e.Name()) {
			continue
		}
		dir, swept := filepath.Join(s.home, "sessions", e.Name()), filepath.Join(s.dir, "swept-"+e.Name())
		if info, err := e.Info(); err != nil || !described(dir) && time.Since(info.ModTime()).Abs() < 2*time.Second { // negative: the clock was set back
			continue // it may be about to take its lock, which it has before it describes itself
		}
		lock, err := s.app.lockDir(dir)
		if err != nil {
			continue // it has its lock, or another sweep does
		}
		// The rows first: a sweep that is killed here is made again. Then all at
		// once: a session that begins just now must not find half of it.
		if _, err = readSessionInfo(dir); err == nil {
			err = s.closeKilled(ctx, e.Name())
		} else if errors.Is(err, fs.ErrNotExist) {
			err = nil // it had not begun
		}
		if err == nil {
			err = os.Rename(dir, swept)
		}
		_ = lock.Close()
		if err == nil {
			_ = os.RemoveAll(swept)
		}
	}
}

// described reports whether the session of a directory has begun.
func described(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "session.json"))
	return err == nil
}

// readSessionInfo reads the description of a session's directory. An error is
// fs.ErrNotExist when there is none, and a *format.Error for a session of a
// newer aileron, whose directory is left to that one.
func readSessionInfo(dir string) (info sessionInfo, err error) {
	path := filepath.Join(dir, "session.json")
	raw, err := os.ReadFile(path)
	if err != nil {
		return info, fmt.Errorf("read the session's description: %w", err)
	}
	if err := format.CheckJSON(raw, path, sessionFormat); err != nil {
		return info, err
	}
	_ = json.Unmarshal(raw, &info) // what was killed while it wrote has none
	return info, nil
}

// errPending is returned for a session some of whose rows wait in a spill file.
var errPending = errors.New("rows of the session are not in the audit log yet")

// closeKilled writes the rows that a session whose process is gone could not.
func (s *session) closeKilled(ctx context.Context, id string) error {
	s.audit.Adopt(ctx) // it may have kept outcomes
	pending, err := audit.Spills(filepath.Join(s.home, "audit.db"))
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
	_, err = s.audit.Append(ctx, audit.Row{Event: audit.EventSessionEnded, SessionID: id, Source: audit.SourceLauncher,
		Reason: "unclean", Fields: map[string]any{"cause": uncleanCause}})
	return err
}
