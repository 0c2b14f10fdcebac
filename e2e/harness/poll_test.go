package harness

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestPollEndsWithTheEventOrWithItsPatience(t *testing.T) {
	for _, c := range []struct {
		name  string
		after int // calls until the event
		want  bool
		calls int
		takes time.Duration
		call  time.Duration // what one call takes
	}{
		{"at once", 1, true, 1, 0, 0},
		{"later", 4, true, 4, 30 * time.Millisecond, 0},
		{"never", 100, false, 5, 35 * time.Millisecond, 0},
		{"after long calls", 2, true, 2, 32 * time.Millisecond, 8 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun, calls := time.Now(), 0
				got := Poll(35*time.Millisecond, 10*time.Millisecond, func() bool {
					<-time.After(c.call)
					calls++
					return calls == c.after
				})
				if got != c.want || calls != c.calls || time.Since(begun) != c.takes {
					t.Errorf("Poll = %v with %d calls in %v, want %v with %d in %v",
						got, calls, time.Since(begun), c.want, c.calls, c.takes)
				}
			})
		})
	}
}
