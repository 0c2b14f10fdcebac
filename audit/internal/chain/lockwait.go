package chain

import (
	"sync/atomic"
	"time"
)

// BusyTimeout is how long a commit waits for another process's lock. Tests change it.
var BusyTimeout = 3 * time.Second

// StuckTimeout is how long a commit waits if the one before it did not get the lock.
const StuckTimeout = 25 * time.Millisecond

// LockWait decides how long commits wait for locks of other processes: once for long, then only briefly until a
// commit gets the lock. So rows that queue behind a lock that persists do not add up their waits, and the first commit
// after its release ends this state.
type LockWait struct {
	Long  time.Duration // 0: BusyTimeout
	Stuck bool          // the last commit did not get a lock
	Last  atomic.Bool   // the log is being closed: its last commit waits for long
}

// Span returns how long the next commit waits.
func (w *LockWait) Span() time.Duration {
	switch {
	case w.IsStuck():
		return StuckTimeout
	case w.Long > 0:
		return w.Long
	}
	return BusyTimeout
}

// Observe records whether a commit did not get a lock.
func (w *LockWait) Observe(locked bool) { w.Stuck = locked }

// IsStuck reports whether the last commit did not get a lock, and the next one waits only briefly.
func (w *LockWait) IsStuck() bool { return w.Stuck && !w.Last.Load() }
