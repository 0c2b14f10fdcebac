package main

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/internal/format"
)

// Reasons of errors of the system.
const (
	faultDescriptors = "too_many_open_files"
	faultLocks       = "no_file_locks"
	faultNewer       = "newer_format"
)

// onlyRemedy reports whether what [systemFault] says about a reason is all that
// can be done, whatever the command was about.
func onlyRemedy(reason string) bool {
	return reason == faultDescriptors || reason == faultLocks || reason == faultNewer
}

// systemHint returns what to do about an error of the system, "" when err has
// none that a person can do something about.
func systemHint(err error) string {
	_, mend := systemFault(err)
	return mend
}

// systemFault returns the reason of an error of the system, or of what a newer
// aileron wrote, for --json and rows, and what to do about it.
func systemFault(err error) (reason, mend string) {
	if errors.As(err, new(*format.Error)) {
		return faultNewer, "nothing was changed: use the aileron that wrote it, or a newer one"
	}
	var errno unix.Errno
	if !errors.As(err, &errno) {
		return "", ""
	}
	switch errno {
	case unix.EMFILE, unix.ENFILE:
		return faultDescriptors, "raise the limit of open files (ulimit -n), or close programs"
	case unix.ENOSPC, unix.EDQUOT:
		return "disk_full", "free some space on that file system"
	case unix.ENOLCK, unix.EOPNOTSUPP:
		return faultLocks, "that file system has no file locks; keep the home on a local disk, with --home"
	case unix.EROFS:
		return "read_only", "mount that file system writable, or name another home with --home"
	case unix.EACCES, unix.EPERM:
		return "permission_denied", "check the rights on that file, and whose it is"
	case unix.EIO, unix.ESTALE, unix.ENOTCONN, unix.ENXIO, unix.EUCLEAN:
		return "io_error", "check the disk, or the server that it is on"
	}
	return "", ""
}
