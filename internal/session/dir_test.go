package session

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

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

// A process that stood still before it had its lock may find its directory
// swept away.
func TestASessionThatWasSweptBeforeItsLockHasADirectory(t *testing.T) {
	o := newOptions(t)
	refused := make(chan struct{}, 1)
	o.Locks.Flock = func(fd, how int) error {
		err := unix.Flock(fd, how)
		if errors.Is(err, unix.EWOULDBLOCK) {
			select {
			case refused <- struct{}{}:
			default:
			}
		}
		return err
	}
	s := newSession(o)
	dir := filepath.Join(sessionsDir(s.opts.Home), s.id)
	fatal(t, os.MkdirAll(dir, 0o700))
	sweep, err := lockDir(filelock.Locker{}, dir)
	fatal(t, err)
	made := make(chan error)
	go func() { made <- s.makeDir(t.Context()) }()
	select {
	case <-refused: // the sweep has the lock
	case err := <-made:
		t.Fatalf("the directory of another process was taken: %v", err)
	}
	fatal(t, os.Rename(dir, filepath.Join(t.TempDir(), "swept")))
	_ = sweep.Close()
	fatal(t, <-made)
	defer s.release()
	if _, err := os.Stat(filepath.Join(dir, "session.json")); err != nil || !Alive(s.opts.Home, s.id) {
		t.Errorf("its description: %v; alive: %v", err, Alive(s.opts.Home, s.id))
	}
}
