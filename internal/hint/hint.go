// Package hint attaches to an error what its reader can do about it.
//
// Call [New] where the remedy is known, which is often far below the command
// that prints the error; the command asks [Of] and prints the hint on its own.
// An error that is one type, and always has a hint, has a method Hint instead:
//
//	return hint.New(fmt.Errorf("open the vault: %w", err), "create one with: aileron vault init")
//
// A hint is no part of the error's text, so wrapping an error neither repeats
// its hint nor hides it. A hint is printed: it must not contain a secret.
package hint

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/internal/format"
	"github.com/ALRubinger/aileron/internal/system"
)

// hinted is an error with its hint.
type hinted struct {
	error
	hint string
}

// Hint returns what its reader can do.
func (h hinted) Hint() string { return h.hint }

// Unwrap returns the error without its hint.
func (h hinted) Unwrap() error { return h.error }

// New returns err with a hint formatted as by [fmt.Sprintf]. The text of err,
// and what [errors.Is] and [errors.As] find in it, are unchanged. New returns
// nil if err is nil.
func New(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return hinted{err, fmt.Sprintf(format, args...)}
}

// Of returns the hint of err, or "" if it has none. If several errors in the
// tree of err have one, the outermost wins: it knows more of what was asked.
func Of(err error) string {
	var h interface{ Hint() string }
	if !errors.As(err, &h) {
		return ""
	}
	return h.Hint()
}

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
	case unix.EIO, unix.ESTALE, unix.ENOTCONN, unix.ENXIO, system.ErrDamaged:
		return "io_error", "check the disk, or the server that it is on"
	}
	return "", ""
}
