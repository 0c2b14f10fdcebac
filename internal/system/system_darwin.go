package system

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const getTermios, setTermios = unix.TIOCGETA, unix.TIOCSETA

func flushInput(fd int) error {
	const read = 1 // FREAD
	return unix.IoctlSetPointerInt(fd, unix.TIOCFLUSH, read)
}

// ErrDamaged is that of a device.
const ErrDamaged = unix.EDEVERR

// MaxSocketPath is that of Linux, 104 bytes with the NUL.
const MaxSocketPath = 103

// Locks of open descriptions, by the numbers that sys/fcntl.h of XNU has for them.
const (
	SetLock     = 90 // F_OFD_SETLK
	SetLockWait = 91 // F_OFD_SETLKW
)

// OpenProcess is not supported.
func OpenProcess(int) (int, error) { return 0, errors.ErrUnsupported }

// SignalProcess is not supported.
func SignalProcess(int, syscall.Signal) error { return errors.ErrUnsupported }

// KillProcess kills a process by its number.
func KillProcess(pid int, same func() bool) error {
	if !same() {
		return unix.ESRCH
	}
	return unix.Kill(pid, unix.SIGKILL)
}

// AwaitExit waits until the kernel reports the end of a child (kqueue(2)).
func AwaitExit(pid int) {
	queue, err := unix.Kqueue()
	if err != nil {
		return
	}
	defer func() { _ = unix.Close(queue) }()
	var change unix.Kevent_t
	unix.SetKevent(&change, pid, unix.EVFILT_PROC, unix.EV_ADD|unix.EV_ONESHOT)
	change.Fflags = unix.NOTE_EXIT
	for {
		_, err := unix.Kevent(queue, []unix.Kevent_t{change}, make([]unix.Kevent_t, 1), nil)
		if !errors.Is(err, unix.EINTR) {
			return // it has ended, or had before
		}
	}
}

// DieWithParent does nothing.
func DieWithParent(*syscall.SysProcAttr, syscall.Signal) {}

// PeerOf returns what LOCAL_PEERCRED and LOCAL_PEERPID are.
func PeerOf(fd int) (uid, pid int, err error) {
	cred, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return 0, 0, err
	}
	pid, err = unix.GetsockoptInt(fd, unix.SOL_LOCAL, unix.LOCAL_PEERPID)
	return int(cred.Uid), pid, err
}

// Undumpable denies debuggers, ptrace(2).
func Undumpable() error { return unix.PtraceDenyAttach() }

// KeepPrivate does nothing.
func KeepPrivate([]byte) error { return nil }

// MemoryFile returns a file that was removed.
func MemoryFile(name string) (*os.File, error) {
	f, err := os.CreateTemp("", name)
	if err != nil {
		return nil, err
	}
	return f, os.Remove(f.Name())
}

// SinceStart returns the time of a clock that goes on in sleep.
func SinceStart() time.Duration {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now)
	return time.Duration(now.Nano())
}

// SocketPair returns two unix sockets that are connected, and that no child inherits.
func SocketPair() (pair [2]int, err error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if pair, err = unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0); err == nil {
		unix.CloseOnExec(pair[0])
		unix.CloseOnExec(pair[1])
	}
	return pair, err
}

// Duplicate makes a descriptor that of another's file, for children too.
func Duplicate(from, to int) error { return unix.Dup2(from, to) }

// SyncData writes a file to its disk.
func SyncData(f *os.File) error { return f.Sync() }

// Reserve is not supported.
func Reserve(*os.File, int64, int64) error { return unix.EOPNOTSUPP }

// Erase is not supported.
func Erase(*os.File, int64, int64) error { return unix.EOPNOTSUPP }

// FreeSpace returns how many bytes may be written to the file system of a path, as df does.
func FreeSpace(path string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return 0, err
	}
	return int64(st.Bavail) * int64(st.Bsize), nil //nolint:gosec // no file system has as many bytes
}

// IsReadOnly reports whether the file system of a path is mounted read-only.
func IsReadOnly(path string) bool {
	var st unix.Statfs_t
	return unix.Statfs(path, &st) == nil && st.Flags&unix.MNT_RDONLY != 0
}

// IsMemory is false.
func IsMemory(string) bool { return false }

// Changed returns when a file's inode was changed.
func Changed(info fs.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Ctimespec.Nano()
	}
	return 0
}

// IsAdmin is false.
func IsAdmin() bool { return false }
