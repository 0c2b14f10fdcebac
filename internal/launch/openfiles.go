package launch

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/internal/hint"
)

// The limits of open files below which no session starts, and below which it serves few connections.
const (
	leastFiles = 32
	FewFiles   = 1024
)

// OpenFileLimit returns how many files this process may have open. Go raises the soft limit to the hard one.
func OpenFileLimit() uint64 {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return FewFiles // it is not known
	}
	return l.Max
}

// CheckOpenFiles returns an error if a session would run out of files before it is open. SQLite's own error, for one,
// names no cause.
func CheckOpenFiles(limit uint64) error {
	if limit >= leastFiles {
		return nil
	}
	return hint.New(fmt.Errorf("start a session: this process may have %d files open, and it needs %d", limit, leastFiles),
		"raise the limit of open files (ulimit -n)")
}
