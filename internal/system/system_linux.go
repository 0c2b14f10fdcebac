package system

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const getTermios, setTermios = unix.TCGETS, unix.TCSETS

func flushInput(fd int) error { return unix.IoctlSetInt(fd, unix.TCFLSH, unix.TCIFLUSH) }

// ErrDamaged is what the kernel returns for a file system that is damaged. macOS has another one for a device.
const ErrDamaged = unix.EUCLEAN

// MaxSocketPath is the longest path that fits into the address of a unix socket with its final NUL.
const MaxSocketPath = 107

// The locks of ranges of a file that belong to its open description (fcntl_locking(2)).
const (
	SetLock     = unix.F_OFD_SETLK
	SetLockWait = unix.F_OFD_SETLKW
)

// OpenProcess returns a descriptor of a process (pidfd_open(2)), which is never that of another one that gets its
// number. It is not supported on macOS.
func OpenProcess(pid int) (fd int, err error) { return unix.PidfdOpen(pid, 0) }

// SignalProcess sends a signal to the process of a descriptor.
func SignalProcess(fd int, sig syscall.Signal) error { return unix.PidfdSendSignal(fd, sig, nil, 0) }

// KillProcess kills a process if same, which is called when it cannot become another one any more, reports that it is
// the one that is meant. On macOS, where a number is all there is, that is a moment too early.
func KillProcess(pid int, same func() bool) error {
	fd, err := OpenProcess(pid)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	if !same() {
		return unix.ESRCH
	}
	return SignalProcess(fd, unix.SIGKILL)
}

// AwaitExit waits until a child has ended, and leaves its status to others.
func AwaitExit(pid int) {
	for {
		if err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil); !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// DieWithParent makes the kernel send a signal to a command with these attributes when the thread that has started it
// ends. It does nothing on macOS.
func DieWithParent(attr *syscall.SysProcAttr, sig syscall.Signal) { attr.Pdeathsig = sig }

// PeerOf returns the user and the process at the other end of a connected unix socket.
func PeerOf(fd int) (uid, pid int, err error) {
	cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0, 0, err
	}
	return int(cred.Uid), int(cred.Pid), nil
}

// Undumpable keeps other processes of this user from reading this one and from attaching to it. macOS denies the
// second, and lets no other program read memory without it.
func Undumpable() error { return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }

// KeepPrivate keeps pages of memory out of core files and of children. macOS keeps them where they are: no core file is
// written, and a child executes another program.
func KeepPrivate(page []byte) error {
	return errors.Join(unix.Madvise(page, unix.MADV_DONTDUMP), unix.Madvise(page, unix.MADV_DONTFORK))
}

// MemoryFile returns a file without a name, in memory. On macOS it is one on the disk that was removed.
func MemoryFile(name string) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// SinceStart returns how long this machine runs, times of sleep included.
func SinceStart() time.Duration {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) // it fails for a clock that there is not, and every Linux has it
	return time.Duration(now.Nano())
}

// SocketPair returns two unix sockets that are connected, and that no child inherits.
func SocketPair() ([2]int, error) {
	return unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
}

// Duplicate makes a descriptor that of another's file, for children too.
func Duplicate(from, to int) error { return unix.Dup3(from, to, 0) }

// SyncData writes the data of a file to its disk.
func SyncData(f *os.File) error { return unix.Fdatasync(int(f.Fd())) }

// Reserve makes the file system keep size bytes of a file behind from. It is not supported on macOS.
func Reserve(f *os.File, from, size int64) error { return unix.Fallocate(int(f.Fd()), 0, from, size) }

// Erase makes size bytes of a file behind from zeros, and returns their space to the file system. It is not supported
// on macOS.
func Erase(f *os.File, from, size int64) error {
	return unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, from, size)
}

// FreeSpace returns how many bytes may be written to the file system of a path, as df does.
func FreeSpace(path string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return 0, err
	}
	return int64(st.Bavail) * st.Bsize, nil //nolint:gosec // no file system has as many bytes
}

// IsReadOnly reports whether the file system of a path is mounted read-only.
func IsReadOnly(path string) bool {
	var st unix.Statfs_t
	return unix.Statfs(path, &st) == nil && st.Flags&unix.ST_RDONLY != 0
}

// IsMemory reports whether the files of a directory are kept in memory. It is false on macOS.
func IsMemory(path string) bool {
	var st unix.Statfs_t
	return unix.Statfs(path, &st) == nil && st.Type == unix.TMPFS_MAGIC
}

// Changed returns when a file's inode was changed, in nanoseconds, which no program can set; 0 where it is not known.
func Changed(info fs.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Ctim.Nano()
	}
	return 0
}

// IsAdmin reports whether this process has CAP_SYS_ADMIN. It is false on macOS.
func IsAdmin() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData // version 3 has 64 capabilities
	return unix.Capget(&header, &sets[0]) == nil && sets[0].Effective&(1<<unix.CAP_SYS_ADMIN) != 0
}
