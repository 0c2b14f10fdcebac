package journal

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/internal/system"
)

// LockNamed locks f, which was opened at path. The error wraps EWOULDBLOCK if another process has the lock, and
// fs.ErrNotExist if f is no longer at path.
func LockNamed(f *os.File, path string) error {
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

// allocate makes the file system reserve size bytes of f behind from. If it cannot, zeros are written.
func allocate(f *os.File, from, size int64) error {
	before := Allocated(f)
	err := system.Reserve(f, from, size)
	if err == nil && (Allocated(f) > before || from+size <= before) {
		return nil
	}
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return err
	}
	if _, err := f.WriteAt(make([]byte, size), from); err != nil {
		return err
	}
	return f.Sync()
}

// Allocated returns how many bytes of f have blocks on the disk.
func Allocated(f *os.File) int64 {
	var st unix.Stat_t
	if unix.Fstat(int(f.Fd()), &st) != nil {
		return 0
	}
	return st.Blocks * 512
}
