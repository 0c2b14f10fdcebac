package attacks

import (
	"runtime"
	"sync"
	"testing"
	"time"
)

// wait waits for a channel, no longer than what must come may take, and fails
// the case with the name of what did not come.
func (c *testCase) wait(what string, ch <-chan struct{}) {
	timer := time.NewTimer(c.s.patience)
	defer timer.Stop()
	select {
	case <-ch:
	case <-timer.C:
		c.failf("waited %v, and it did not come: %s", c.s.patience, what)
	}
}

// waitAll is wait for a group.
func (c *testCase) waitAll(what string, group *sync.WaitGroup) {
	done := make(chan struct{})
	go func() { defer close(done); group.Wait() }()
	c.wait(what, done)
}

// caseLimit is more than any case takes: each wait in it is bounded by less.
var caseLimit = 4 * patience

// limited runs a case, and fails the test when it hangs in spite of the bounds
// of its waits, with its name and what everything waits for. What hangs is left
// behind: the test ends, and so does the suite, which then cleans up.
func limited(t testing.TB, name string, testCase func()) {
	t.Helper()
	ended, whole := make(chan struct{}), false
	go func() {
		defer close(ended)
		testCase()
		whole = true // else a t.Fatal has ended it
	}()
	timer := time.NewTimer(caseLimit)
	defer timer.Stop()
	select {
	case <-ended:
		if !whole {
			runtime.Goexit()
		}
	case <-timer.C:
		buf := make([]byte, 1<<20)
		t.Fatalf("attacks: %s has not ended after %v:\n%s", name, caseLimit, buf[:runtime.Stack(buf, true)])
	}
}
