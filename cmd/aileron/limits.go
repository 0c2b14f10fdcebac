package main

import (
	"context"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/internal/hint"
)

// The limits of open files below which no session starts, and below which it serves few connections.
const (
	leastFiles = 32
	fewFiles   = 1024
)

// openFileLimit returns how many files this process may have open. Go raises the soft limit to the hard one.
func openFileLimit() uint64 {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return fewFiles // it is not known
	}
	return l.Max
}

// checkOpenFiles returns an error if a session would run out of files before it is open. SQLite's own error, for one,
// names no cause.
func checkOpenFiles(limit uint64) error {
	if limit >= leastFiles {
		return nil
	}
	return hint.New(fmt.Errorf("start a session: this process may have %d files open, and it needs %d", limit, leastFiles),
		"raise the limit of open files (ulimit -n)")
}

// checkLimits checks what this process may use.
func (d *doctor) checkLimits(context.Context) {
	const fix = "raise the limit of open files (ulimit -n), for all logins in /etc/security/limits.conf"
	files := openFileLimit()
	switch err := checkOpenFiles(files); {
	case err != nil:
		d.add(failed("limits", err, fix))
	case files < fewFiles:
		d.add(warning("limits", fix, "%d files may be open; a session then serves few connections at once", files))
	default:
		d.add(healthy("limits", "%d files may be open", files))
	}
	var locked unix.Rlimit
	const page = 4096
	if unix.Getrlimit(unix.RLIMIT_MEMLOCK, &locked) == nil && locked.Max < page {
		d.add(warning("limits", "raise the limit of locked memory (ulimit -l 64)",
			"%d bytes may be locked; aileron vault unlock --for needs %d", locked.Max, page))
	}
}
