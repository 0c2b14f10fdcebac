package session

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ALRubinger/aileron/internal/filelock"
)

func TestASessionsFilesAreItsOwners(t *testing.T) {
	s := open(t, newOptions(t))
	for name, want := range map[string]os.FileMode{
		"": 0o700, "control.sock": 0o600, "session.json": 0o600, "lock": 0o600,
	} {
		info, err := os.Stat(filepath.Join(s.Dir(), name))
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%q: %v, %v; want %v", name, info.Mode(), err, want)
		}
	}
	if !Alive(s.opts.Home, s.ID()) {
		t.Error("it does not count as running")
	}
	for _, id := range []string{"../sessions/" + s.ID(), s.ID() + "/.", "./" + s.ID()} {
		if Alive(s.opts.Home, id) {
			t.Errorf("the path %q counts as a session", id)
		}
	}
}

// waitsFor waits until this process has a second descriptor of a locked file
// open, as it has while it tries to lock the file.
func waitsFor(t *testing.T, path string) {
	t.Helper()
	until(t, "another descriptor of "+path, func() bool {
		fds, err := filepath.Glob("/proc/self/fd/*")
		fatal(t, err)
		open := 0
		for _, fd := range fds {
			if at, err := os.Readlink(fd); err == nil && at == path {
				open++
			}
		}
		return open > 1
	})
}

// A process that stood still before it had its lock may find its directory
// swept away.
func TestASessionThatWasSweptBeforeItsLockHasADirectory(t *testing.T) {
	s := newSession(newOptions(t))
	dir := filepath.Join(sessionsDir(s.opts.Home), s.id)
	fatal(t, os.MkdirAll(dir, 0o700))
	sweep, err := lockDir(filelock.Locker{}, dir)
	fatal(t, err)
	made := make(chan error)
	go func() { made <- s.makeDir(t.Context()) }()
	waitsFor(t, filepath.Join(dir, "lock"))
	fatal(t, os.Rename(dir, filepath.Join(t.TempDir(), "swept")))
	_ = sweep.Close()
	fatal(t, <-made)
	defer s.release()
	if _, err := os.Stat(filepath.Join(dir, "session.json")); err != nil || !Alive(s.opts.Home, s.id) {
		t.Errorf("its description: %v; alive: %v", err, Alive(s.opts.Home, s.id))
	}
}
