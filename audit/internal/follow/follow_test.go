package follow

import (
	"testing"
	"time"
)

// A log that is written is looked at often, and one that is not less and less.
func TestPollsAreAsFrequentAsRows(t *testing.T) {
	every := followEvery
	for i, step := range []struct {
		found bool
		want  time.Duration
	}{
		{false, 100 * time.Millisecond}, {true, 20 * time.Millisecond}, {true, 20 * time.Millisecond},
		{false, 40 * time.Millisecond}, {false, 80 * time.Millisecond}, {false, 100 * time.Millisecond},
		{false, 100 * time.Millisecond}, {true, 20 * time.Millisecond},
	} {
		if every = nextPoll(every, step.found); every != step.want {
			t.Errorf("step %d: it polls again in %v, want %v", i, every, step.want)
		}
	}
}
