// Package system has the calls to the kernel in which Linux and macOS differ, so that the packages above have one form
// of them. What macOS has nothing for returns [errors.ErrUnsupported], or does what comes next to it, which the call's
// comment states for both.
package system

import "golang.org/x/sys/unix"

// FlushInput discards what was typed on a terminal and not read yet.
func FlushInput(fd int) { _ = flushInput(fd) }

// ReadTermios returns the settings of a terminal.
func ReadTermios(fd int) (*unix.Termios, error) { return unix.IoctlGetTermios(fd, getTermios) }

// WriteTermios changes the settings of a terminal at once.
func WriteTermios(fd int, t *unix.Termios) error { return unix.IoctlSetTermios(fd, setTermios, t) }

// Kernel returns the release of this machine's kernel, or "".
func Kernel() string {
	var name unix.Utsname
	if unix.Uname(&name) != nil {
		return ""
	}
	return unix.ByteSliceToString(name.Release[:])
}
