package audit

import (
	"errors"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

const (
	// busyTimeout is how long a commit waits for another process's lock.
	busyTimeout = 3 * time.Second
	// stuckTimeout is how long it waits when the commit before it waited and
	// did not get the lock.
	stuckTimeout = 25 * time.Millisecond
)

// lockWait is how long commits wait for locks of other processes: once for
// long, and then briefly until one of them gets the lock. So requests that
// queue behind a lock which persists do not add their waits up, and the first
// commit behind a lock that is released ends the state.
type lockWait struct {
	long  time.Duration // 0: busyTimeout
	stuck bool          // the last commit did not get a lock
	last  atomic.Bool   // what cannot be committed now is lost: it waits for long
}

// span returns how long the next commit waits.
func (p *lockWait) span() time.Duration {
	switch {
	case p.stuck && !p.last.Load():
		return stuckTimeout
	case p.long > 0:
		return p.long
	}
	return busyTimeout
}

// learn takes note of how a commit ended.
func (p *lockWait) learn(err error) { p.stuck = IsLocked(err) }

// IsLocked reports whether err is the fault of a lock of another process.
func IsLocked(err error) bool {
	var fault *sqlite.Error
	if !errors.As(err, &fault) {
		return errors.Is(err, unix.EWOULDBLOCK)
	}
	code := fault.Code() & 0xff
	return code == sqlite3.SQLITE_BUSY || code == sqlite3.SQLITE_LOCKED
}
