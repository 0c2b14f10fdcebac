package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// spillLockTimeout is how long a new spill file may be locked by processes that check whether it can be adopted.
const spillLockTimeout = 4 * time.Second

// reserveSpill creates the spill file of a session beside the database.
func reserveSpill(db, session, writer string) (*spillFile, error) {
	s := &spillFile{session: session, path: filepath.Join(filepath.Dir(db), spillPrefix+session+"-"+writer)}
	for end := time.Now().Add(spillLockTimeout); ; time.Sleep(time.Millisecond) {
		err := s.create()
		if err == nil {
			break
		}
		// Another process may have locked the file, and perhaps removed it, before this one did.
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, fs.ErrNotExist) || time.Now().After(end) {
			return nil, fmt.Errorf("reserve %s: %w", filepath.Base(s.path), err)
		}
	}
	if err := allocate(s.file, spillSize); err != nil {
		s.remove()
		return nil, fmt.Errorf("reserve %s: %w", filepath.Base(s.path), err)
	}
	return s, nil
}

// create opens and locks the file.
func (s *spillFile) create() error {
	f, err := os.OpenFile(s.path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	if err := lockNamed(f, s.path); err != nil {
		_ = f.Close()
		return err
	}
	s.file = f
	return nil
}

// lockNamed locks f, which was opened at path. The error wraps EWOULDBLOCK if another process has the lock, and
// fs.ErrNotExist if f is no longer at path.
func lockNamed(f *os.File, path string) error {
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return err
	}
	ours, err := f.Stat()
	if err != nil {
		return err
	}
	there, err := os.Lstat(path)
	if err == nil && !os.SameFile(ours, there) {
		err = fs.ErrNotExist
	}
	return err
}

// allocate makes the file system reserve size bytes for f. If it cannot, zeros are written.
func allocate(f *os.File, size int64) error {
	err := unix.Fallocate(int(f.Fd()), 0, 0, size)
	if err == nil && allocated(f) >= size {
		return nil
	}
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return err
	}
	if _, err := f.WriteAt(make([]byte, size), 0); err != nil {
		return err
	}
	return f.Sync()
}

// allocated returns how many bytes of f have blocks on the disk.
func allocated(f *os.File) int64 {
	var st unix.Stat_t
	if unix.Fstat(int(f.Fd()), &st) != nil {
		return 0
	}
	return st.Blocks * 512
}
