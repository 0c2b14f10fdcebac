package gateway

import (
	"testing"
	"time"
	"unsafe"
)

// setWall returns t as if the wall clock had been set by d since, and the
// monotonic one had gone on: seconds of a wall reading begin at bit 30.
func setWall(t time.Time, d time.Duration) time.Time {
	wall := (*uint64)(unsafe.Pointer(&t))
	*wall -= uint64(d/time.Second) << 30
	return t
}

// The wall clock may be set while a connection is open. Set a day ahead, it makes
// no connection idle; set a day back, it keeps none alive.
func TestActivityIsMeasuredByTheMonotonicClock(t *testing.T) {
	for _, set := range []time.Duration{24 * time.Hour, -24 * time.Hour} {
		a := &activity{began: setWall(time.Now(), set)}
		if idle := a.idle(); idle < 0 || idle > time.Hour {
			t.Errorf("the clock was set by %v: idle for %v", set, idle)
		}
		a.mark()
		if idle := a.idle(); idle < 0 || idle > time.Hour {
			t.Errorf("the clock was set by %v before bytes moved: idle for %v", set, idle)
		}
	}
}
