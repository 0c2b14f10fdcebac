package approval

import (
	"time"

	"github.com/ALRubinger/aileron/internal/system"
)

// moment is a time on the clock of this machine that cannot be set, and that a suspension does not stop: the time
// since its start.
type moment time.Duration

// sinceBoot returns the moment that it is now.
func sinceBoot() time.Duration { return system.SinceStart() }

// passed reports whether the moment is over. The zero moment is none.
func (m moment) passed(now time.Duration) bool { return now >= time.Duration(m) }

// in returns the moment after a time.
func in(now, d time.Duration) moment { return moment(now + d) }
