package filelock_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/filelock"
)

func TestOnlyOneHoldsALock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	if filelock.Held(path) {
		t.Error("Held = true for a file that does not exist")
	}
	lock := must.Get(filelock.Locker{}.Lock(path, unix.LOCK_EX|unix.LOCK_NB))(t)
	if !filelock.Held(path) {
		t.Error("Held = false while the lock is held")
	}
	if _, err := (filelock.Locker{}).Lock(path, unix.LOCK_EX|unix.LOCK_NB); !errors.Is(err, unix.EWOULDBLOCK) {
		t.Errorf("the second Lock: %v, want EWOULDBLOCK", err)
	}
	_ = lock.Close()
	if filelock.Held(path) {
		t.Error("Held = true after the file was closed")
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v, %v; want mode 0600", info, err)
	}
}

// replacing removes a file before its lock is taken, as a sweep does, n times.
func replacing(path string, n int) filelock.Locker {
	return filelock.Locker{Flock: func(fd, how int) error {
		if n--; n >= 0 {
			if err := os.Remove(path); err != nil {
				return err
			}
		}
		return unix.Flock(fd, how)
	}}
}

func TestALockOfARemovedFileIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	if _, err := replacing(path, 1).Lock(path, unix.LOCK_EX); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Lock: %v, want ErrNotExist", err)
	}
	replaced := filelock.Locker{Flock: func(fd, how int) error {
		if err := os.Rename(path, path+".old"); err != nil {
			return err
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			return err
		}
		return unix.Flock(fd, how)
	}}
	if _, err := replaced.Lock(path, unix.LOCK_EX); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Lock of a file that was replaced: %v, want ErrNotExist", err)
	}
	lock, err := replacing(path, 3).LockNew(path)
	if err != nil || !filelock.Held(path) {
		t.Fatalf("LockNew: %v; held: %v", err, filelock.Held(path))
	}
	_ = lock.Close()
}

func TestAnInterruptedLockIsTakenAgain(t *testing.T) {
	calls := 0
	l := filelock.Locker{Flock: func(int, int) error {
		if calls++; calls < 3 {
			return unix.EINTR
		}
		return nil
	}}
	lock, err := l.Lock(filepath.Join(t.TempDir(), "lock"), unix.LOCK_EX)
	if err != nil || calls != 3 {
		t.Fatalf("Lock: %v after %d calls, want none after 3", err, calls)
	}
	_ = lock.Close()
}

// A process that cannot look takes no other for dead.
func TestALockThatCannotBeLookedAtMayBeHeld(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	if filelock.Held(path) || filelock.Held(filepath.Join("/dev/null", "lock")) {
		t.Error("a file that is missing is held")
	}
	if err := os.Symlink(path, path); err != nil {
		t.Fatal(err)
	}
	if !filelock.Held(path) {
		t.Error("a file that cannot be opened is not held")
	}
}

func TestLockReturnsTheErrorOfTheFileSystem(t *testing.T) {
	l := filelock.Locker{Flock: func(int, int) error { return unix.ENOLCK }}
	path := filepath.Join(t.TempDir(), "lock")
	if _, err := l.Lock(path, unix.LOCK_EX); !errors.Is(err, unix.ENOLCK) {
		t.Errorf("Lock: %v, want ENOLCK", err)
	}
	if _, err := l.LockNew(path); !errors.Is(err, unix.ENOLCK) {
		t.Errorf("LockNew: %v, want ENOLCK", err)
	}
}
