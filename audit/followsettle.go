package audit

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// followSettle is the interval at which Follow looks for journals of sessions that are gone. Those of running sessions
// are folded without it.
const followSettle = time.Second

// settleKilled adds the last rows of killed sessions to the log: another session or command may start much later.
func (f *follower) settleKilled() {
	if time.Since(f.settled) < followSettle {
		return
	}
	f.settled = time.Now()
	names, err := filesBeside(f.path, journalSession)
	if err != nil {
		return // as long as they cannot be read, the log cannot either
	}
	for _, name := range names {
		if isAbandoned(name) {
			settle(f.path)
			return
		}
	}
}

// isAbandoned reports whether no process has the journal locked.
func isAbandoned(path string) bool {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	return unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB) == nil
}
