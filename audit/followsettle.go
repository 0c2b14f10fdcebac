package audit

import (
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/audit/internal/journal"
)

// followSettle is the interval at which Follow looks for journals of sessions that are gone. Those of running sessions
// are folded without it.
const followSettle = time.Second

// settleKilled calls SettleKilled, once in a while.
func (f *follower) settleKilled() {
	if time.Since(f.settled) >= followSettle {
		f.settled = time.Now()
		SettleKilled(f.path)
	}
}

// SettleKilled adds the last rows of killed sessions to the log at path: another session or command, which would do it
// too, may start much later. It is for programs that keep a log open; [OpenReader] and [Follow] do it by themselves.
func SettleKilled(path string) {
	names, err := journal.Beside(path)
	if err != nil {
		return // as long as they cannot be read, the log cannot either
	}
	for _, name := range names {
		if isAbandoned(name) {
			settle(path)
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
