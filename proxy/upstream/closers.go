package upstream

import "sync"

// errands are goroutines that close connections. Each takes five seconds at
// most, the time that crypto/tls allows a peer for its close notification.
type errands struct {
	mu     sync.Mutex
	closed bool
	wait   sync.WaitGroup
}

// run calls f on a goroutine, or at once when close has been called.
func (e *errands) run(f func()) {
	e.mu.Lock()
	closed := e.closed
	if !closed {
		e.wait.Add(1)
	}
	e.mu.Unlock()
	if closed {
		f()
		return
	}
	go func() {
		defer e.wait.Done()
		f()
	}()
}

// close waits for all goroutines, and lets no other begin.
func (e *errands) close() {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	e.wait.Wait()
}
