package fair

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Least is the least bound: what a session needs, whatever its sandbox may use.
const Least = 0.5

const (
	sampled   = int64(time.Millisecond)      // the process's clock is read once in this time
	saved     = int64(50 * time.Millisecond) // how much unused time may be used later, and overused time is paid back
	longest   = int64(10 * time.Millisecond) // a turn begins after this time, even over the bound: others use it
	leastWait = 200 * time.Microsecond
)

// bound is how much processor time is left of what the process may use. A nil bound is none.
type bound struct {
	cpus  float64
	clock func() time.Duration // of the process
	start time.Time

	left  atomic.Int64 // may be negative
	asked atomic.Int64 // when the clock was read, since start
	spent atomic.Int64 // what the clock said
	begun atomic.Int64 // when the latest turn began, since start
	busy  atomic.Bool  // the clock is being read
}

func newBound(cpus float64, clock func() time.Duration) *bound {
	b := &bound{cpus: max(cpus, Least), clock: clock, start: time.Now()}
	b.spent.Store(int64(clock()))
	b.left.Store(saved)
	return b
}

// allows reports whether a turn may begin now.
func (b *bound) allows(now time.Time) bool {
	if b == nil {
		return true
	}
	since := int64(now.Sub(b.start))
	b.sample(since)
	if b.left.Load() <= 0 && since-b.begun.Load() < longest {
		return false
	}
	b.begun.Store(since)
	return true
}

// sample reads the clock of the process, if that was not done just now.
func (b *bound) sample(since int64) {
	asked := b.asked.Load()
	if since-asked < sampled || !b.busy.CompareAndSwap(false, true) {
		return
	}
	defer b.busy.Store(false)
	spent := int64(b.clock())
	earned := int64(float64(since-asked) * b.cpus)
	left := b.left.Load() + earned - (spent - b.spent.Load())
	b.left.Store(min(max(left, -saved), saved))
	b.spent.Store(spent)
	b.asked.Store(since)
}

// pause returns how long it takes until a turn may begin.
func (b *bound) pause(now time.Time) time.Duration {
	since := int64(now.Sub(b.start))
	owed := time.Duration(float64(-b.left.Load()) / b.cpus)
	forced := time.Duration(b.begun.Load() + longest - since)
	// What is earned counts when the clock is read next.
	return max(min(max(owed, time.Duration(b.asked.Load()+sampled-since)), forced), leastWait)
}

// processTime returns the processor time of this process.
func processTime() time.Duration {
	var used unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &used)
	return time.Duration(used.Nano())
}
