package approval

import (
	"time"

	"golang.org/x/sys/unix"
)

// moment is a time on the clock of this machine that cannot be set, and that a suspension does not stop: the time
// since its start.
type moment time.Duration

// sinceBoot returns the moment that it is now.
func sinceBoot() time.Duration {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) // it fails for a clock that there is not, and every Linux has it
	return time.Duration(now.Nano())
}

// passed reports whether the moment is over. The zero moment is none.
func (m moment) passed(now time.Duration) bool { return now >= time.Duration(m) }

// in returns the moment after a time.
func in(now, d time.Duration) moment { return moment(now + d) }
