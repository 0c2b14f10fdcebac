package front

import (
	"sync"
	"testing"
	"testing/synctest"
)

func TestAWorkerIsUsedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w workers
		w.open()
		for range 3 {
			ran := false
			w.run(func() { ran = true })
			synctest.Wait()
			if !ran || len(w.idle) != 1 {
				t.Fatalf("it ran: %t, and %d goroutines are idle, want 1", ran, len(w.idle))
			}
		}
		w.close() // or the bubble would not end
		w.run(func() {})
		synctest.Wait()
		if len(w.idle) != 0 {
			t.Error("a goroutine is kept that nothing uses")
		}
	})
}

func TestWorkersRunAllAtOnceAndFewAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w workers
		w.open()
		w.open()
		var ended sync.WaitGroup
		release := make(chan struct{})
		for range 3 * maxIdleWorkers {
			ended.Add(1)
			w.run(func() { defer ended.Done(); <-release })
		}
		synctest.Wait()
		close(release)
		ended.Wait()
		w.close()
		synctest.Wait()
		if len(w.idle) != maxIdleWorkers {
			t.Errorf("%d goroutines are kept for the other user, want %d", len(w.idle), maxIdleWorkers)
		}
		w.close()
	})
}
