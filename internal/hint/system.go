package hint

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/internal/format"
)

// Reasons of errors of the system that leave one remedy only.
const (
	reasonDescriptors = "too_many_open_files"
	reasonLocks       = "no_file_locks"
	reasonNewer       = "newer_format"
)

// Only reports whether the hint that [System] returns with reason is all that
// can be done, so that it replaces the hint of a command.
func Only(reason string) bool {
	return reason == reasonDescriptors || reason == reasonLocks || reason == reasonNewer
}

// System returns the reason and the hint of an error of the operating system,
// or of a file that a newer aileron wrote. Both are "" if err is neither, or if
// nothing can be done about it.
func System(err error) (reason, hint string) {
	if errors.As(err, new(*format.Error)) {
		return reasonNewer, "nothing was changed: use the aileron that wrote it, or a newer one"
	}
	var errno unix.Errno
	if !errors.As(err, &errno) {
		return "", ""
	}
	switch errno {
	case unix.EMFILE, unix.ENFILE:
		return reasonDescriptors, "raise the limit of open files (ulimit -n), or close programs"
	case unix.ENOSPC, unix.EDQUOT:
		return "disk_full", "free some space on that file system"
	case unix.ENOLCK, unix.EOPNOTSUPP:
		return reasonLocks, "that file system has no file locks; keep the home on a local disk, with --home"
	case unix.EROFS:
		return "read_only", "mount that file system writable, or name another home with --home"
	case unix.EACCES, unix.EPERM:
		return "permission_denied", "check the rights on that file, and whose it is"
	case unix.EIO, unix.ESTALE, unix.ENOTCONN, unix.ENXIO, unix.EUCLEAN:
		return "io_error", "check the disk, or the server that it is on"
	}
	return "", ""
}
