package audit

import (
	"errors"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
	sqlite3 "modernc.org/sqlite/lib"
)

// busyTimeout is how long a commit waits for another process's lock. Tests change it.
var busyTimeout = 3 * time.Second

// stuckTimeout is how long a commit waits if the one before it did not get the lock.
const stuckTimeout = 25 * time.Millisecond

// lockWait decides how long commits wait for locks of other processes: once for long, then only briefly until a
// commit gets the lock. So rows that queue behind a lock that persists do not add up their waits, and the first commit
// after its release ends this state.
type lockWait struct {
	long  time.Duration // 0: busyTimeout
	stuck bool          // the last commit did not get a lock
	last  atomic.Bool   // the log is being closed: its last commit waits for long
}

// span returns how long the next commit waits.
func (w *lockWait) span() time.Duration {
	switch {
	case w.stuck && !w.last.Load():
		return stuckTimeout
	case w.long > 0:
		return w.long
	}
	return busyTimeout
}

// turnSpan returns how long the next commit waits for its turn: the rows of a session's journal can wait, and what a
// command records cannot.
func (l *Log) turnSpan() time.Duration {
	span := l.lockWait.span()
	switch {
	case l.turns.missed:
		return min(span, stuckTimeout)
	case l.journal == nil || span == stuckTimeout:
		return span
	case l.turns.span > 0:
		return l.turns.span
	}
	return turnTimeout
}

// observe records how a commit ended.
func (w *lockWait) observe(err error) { w.stuck = IsLocked(err) }

// IsLocked reports whether err means that another process holds a lock.
func IsLocked(err error) bool {
	code, ok := codeOf(err)
	if !ok {
		return errors.Is(err, unix.EWOULDBLOCK)
	}
	return code&0xff == sqlite3.SQLITE_BUSY || code&0xff == sqlite3.SQLITE_LOCKED
}
