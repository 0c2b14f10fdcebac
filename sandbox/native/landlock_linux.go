package native

import (
	"errors"
	"fmt"
	"os"
	"path"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Landlock is a second lock over the files of a process: a mount that should be read-only and is not, or a path of this
// host that should not be there, still cannot be written to. Kernels have it in versions, and some not at all.

// Rights over files, as Landlock names them: of reading, of what may be done to a file, and to what is in a directory.
const (
	rightsRead = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	rightsFile = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE |
		unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	rightsAll = 1<<16 - 1
)

// rightsOf returns the rights that a version of Landlock knows.
func rightsOf(version int) uint64 {
	switch {
	case version >= 5:
		return rightsAll
	case version >= 3:
		return rightsAll &^ unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	case version == 2:
		return rightsAll &^ (unix.LANDLOCK_ACCESS_FS_IOCTL_DEV | unix.LANDLOCK_ACCESS_FS_TRUNCATE)
	}
	return rightsAll &^
		(unix.LANDLOCK_ACCESS_FS_IOCTL_DEV | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_REFER)
}

// landlockVersion is the kernel's; 0 is none.
func landlockVersion() int {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(version)
}

// right is what may be done below a path.
type right struct {
	path string
	fs   uint64
}

// restrictFiles takes from every thread of this process, and from all that it starts, what rights do not give. It does
// nothing where the kernel has no Landlock. The process must have CAP_SYS_ADMIN in its user namespace.
func restrictFiles(rights []right) error {
	version := landlockVersion()
	if version == 0 {
		return nil
	}
	known := rightsOf(version)
	attr := unix.LandlockRulesetAttr{Handled_access_fs: known}
	// Its scopes of signals and of abstract sockets are left out: each thread gets a domain of its own, and the
	// namespaces have both.
	//nolint:gosec // the kernel reads it during the call
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)),
		unsafe.Sizeof(attr.Handled_access_fs), 0)
	if errno != 0 {
		return fmt.Errorf("make Landlock's rules: %w", errno)
	}
	defer closeFD(int(fd))
	for _, r := range rights {
		if err := allow(int(fd), r, known); err != nil {
			return fmt.Errorf("make Landlock's rule for %s: %w", r.path, err)
		}
	}
	if _, _, errno := syscall.AllThreadsSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); errno != 0 {
		return fmt.Errorf("put Landlock's rules in force: %w", errno)
	}
	return nil
}

// allow adds a rule. One of a file has the rights of files alone.
func allow(ruleset int, r right, known uint64) error {
	fd, err := unix.Open(r.path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer closeFD(fd)
	var about unix.Stat_t
	if err := unix.Fstat(fd, &about); err != nil {
		return err
	}
	//nolint:gosec // a descriptor
	rule := unix.LandlockPathBeneathAttr{Allowed_access: r.fs & known, Parent_fd: int32(fd)}
	if about.Mode&unix.S_IFMT != unix.S_IFDIR {
		rule.Allowed_access &= rightsFile
	}
	//nolint:gosec // the kernel reads it during the call
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// restrictCommand leaves the command, and the init, writing to what is the sandbox's own alone.
func restrictCommand(l *launch) error {
	rights := []right{{"/", rightsRead}, {"/proc", rightsFile}, {"/dev", rightsFile}}
	for _, at := range writablePlaces() {
		rights = append(rights, right{at, rightsAll})
	}
	for _, m := range l.Mounts {
		if !m.ReadOnly {
			rights = append(rights, right{path.Clean(m.Target), rightsAll})
		}
	}
	return restrictFiles(rights)
}

// restrictGateway leaves the gateway no file but what it reads of itself in /proc, and finds that this is so. The
// sockets of the proxy are no files to Landlock.
func restrictGateway() error {
	if err := restrictFiles([]right{{"/proc", rightsRead}}); err != nil {
		return err
	}
	f, err := os.Open("/")
	if err == nil {
		_ = f.Close()
	}
	if landlockVersion() > 0 && !errors.Is(err, unix.EACCES) {
		return fmt.Errorf("find that the gateway has no files: %w", orNothing(err))
	}
	return nil
}
