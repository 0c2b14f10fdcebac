// Package filelock locks files that several processes of this machine share.
//
// The kernel releases a lock when the process that holds it ends, however it
// ends: a file without a lock belongs to no running process.
//
//	lock, err := filelock.Locker{}.Lock(path, unix.LOCK_EX|unix.LOCK_NB)
//	if errors.Is(err, unix.EWOULDBLOCK) {
//		return nil // its process still runs
//	}
//	defer lock.Close() // releases the lock
package filelock

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Locker locks files. Its zero value is ready to use.
type Locker struct {
	// Flock is called instead of flock(2); nil means flock(2). Only a test sets
	// it, to stand for a file system without locks.
	Flock func(fd, how int) error
}

// Lock opens the file at path, which it creates with mode 0600 if it is
// missing, and locks it; how is flock(2)'s operation. Closing the file releases
// the lock. The error wraps [unix.EWOULDBLOCK] if another process holds the lock
// and how has [unix.LOCK_NB], and [fs.ErrNotExist] if the file was removed or
// replaced before it was locked.
func (l Locker) Lock(path string, how int) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = l.flock(f, how)
	if err == nil {
		var ours, there os.FileInfo
		if ours, err = f.Stat(); err == nil {
			there, err = os.Stat(path)
		}
		if err == nil && !os.SameFile(ours, there) {
			err = fs.ErrNotExist
		}
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// LockNew locks a file that the caller creates. It tries again if another
// process removes the file first, which it may do while the file has no lock:
// then the file seems to be that of a process that was killed.
func (l Locker) LockNew(path string) (*os.File, error) {
	for {
		f, err := l.Lock(path, unix.LOCK_EX)
		if !errors.Is(err, fs.ErrNotExist) {
			return f, err
		}
		if _, err := os.Stat(filepath.Dir(path)); err != nil {
			return nil, err
		}
	}
}

// Held reports whether a process holds the lock of the file at path, or may
// hold it: nothing is known of a file that may be there and cannot be opened, as
// in a process without descriptors.
func Held(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTDIR)
	}
	defer f.Close()
	return unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB) != nil
}

func (l Locker) flock(f *os.File, how int) error {
	flock := l.Flock
	if flock == nil {
		flock = unix.Flock
	}
	for {
		if err := flock(int(f.Fd()), how); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
