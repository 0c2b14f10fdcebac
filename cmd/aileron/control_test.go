package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit"
)

// running returns a session that is open, with a log of its own and its
// directory under home.
func running(t *testing.T, home, id string) *session {
	t.Helper()
	log, err := audit.Open(filepath.Join(home, "audit.db"), audit.Options{Session: id})
	if err != nil {
		t.Fatal(err)
	}
	s := &session{app: &app{}, id: id, home: home, audit: log, stopping: newStopRequest(), ready: make(chan struct{})}
	if err := s.makeDir(); err != nil {
		t.Fatal(err)
	}
	close(s.ready)
	t.Cleanup(func() {
		s.uncontrol()
		_ = s.lock.Close()
		_ = log.Close()
	})
	return s
}

// What a session shows to its owner is its own, and to no one else.
func TestTheControlSocketShowsTheNewestRowsOfItsSession(t *testing.T) {
	home := t.TempDir()
	s := running(t, home, "01OURS")
	for i := range 5 {
		for _, id := range []string{"01OURS", "01THEIRS"} {
			if _, err := s.audit.Append(t.Context(), audit.Row{Event: audit.EventProxyStarted, SessionID: id, Status: i}); err != nil {
				t.Fatal(err)
			}
		}
	}
	raw, err := callControl(t.Context(), home, "01OURS", "GET", "/v1/audit?limit=2", nil)
	if err != nil {
		t.Fatal(err)
	}
	var rows []audit.Row
	if err := json.Unmarshal(raw, &rows); err != nil || len(rows) != 2 {
		t.Fatalf("%s, %v; want two rows", raw, err)
	}
	for i, row := range rows {
		if row.SessionID != "01OURS" || row.Status != 3+i {
			t.Errorf("row %d is %s %d, want 01OURS %d", i, row.SessionID, row.Status, 3+i)
		}
	}
}

func TestASessionsFilesAreItsOwners(t *testing.T) {
	s := running(t, t.TempDir(), "01OURS")
	for name, want := range map[string]os.FileMode{"": 0o700, "control.sock": 0o600, "session.json": 0o600, "lock": 0o600} {
		info, err := os.Stat(filepath.Join(s.dir, name))
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%q: %v, %v; want %v", name, info.Mode(), err, want)
		}
	}
	if !alive(s.home, s.id) {
		t.Error("it does not count as running")
	}
	for _, id := range []string{"../sessions/01OURS", "01OURS/.", "01ours"} {
		if alive(s.home, id) {
			t.Errorf("the path %q counts as a session", id)
		}
	}
}

// A directory may come from before the clock was set back: its session has
// ended all the same.
func TestADirectoryFromTheFutureIsSwept(t *testing.T) {
	home := t.TempDir()
	s := running(t, home, "01OURS")
	for id, made := range map[string]time.Duration{"01PAST": -time.Hour, "01FUTURE": 24 * time.Hour} {
		dir := filepath.Join(home, "sessions", id)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(made)
		if err := os.Chtimes(dir, at, at); err != nil {
			t.Fatal(err)
		}
	}
	s.sweepSessions(t.Context())
	for id, stays := range map[string]bool{"01PAST": false, "01FUTURE": false, "01OURS": true} {
		if _, err := os.Stat(filepath.Join(home, "sessions", id)); (err == nil) != stays {
			t.Errorf("%s: %v, want it there: %v", id, err, stays)
		}
	}
}
