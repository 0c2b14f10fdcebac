package attacks

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"
)

// wait waits for a channel, no longer than what must come may take, and fails
// the trial with the name of what did not come.
func (c *trial) wait(what string, ch <-chan struct{}) {
	timer := time.NewTimer(c.s.patience)
	defer timer.Stop()
	select {
	case <-ch:
	case <-timer.C:
		c.failf("waited %v, and it did not come: %s", c.s.patience, what)
	}
}

// waitAll is wait for a group.
func (c *trial) waitAll(what string, group *sync.WaitGroup) {
	done := make(chan struct{})
	go func() { defer close(done); group.Wait() }()
	c.wait(what, done)
}

// caseLimit is more than any case takes: each wait in it is bounded by less.
const caseLimit = 4 * patience

// limited ends the program when a trial hangs in spite of the bounds of its
// waits, with its name and what everything waits for.
func limited(t testing.TB, name string) (stop func()) {
	timer := time.AfterFunc(caseLimit, func() {
		buf := make([]byte, 1<<20)
		fmt.Fprintf(os.Stderr, "attacks: %s: %s has not ended after %v:\n%s\n", t.Name(), name, caseLimit, buf[:runtime.Stack(buf, true)])
		os.Exit(2)
	})
	return func() { timer.Stop() }
}
