package proxy

import "sync"

// tally counts the exchanges under way, until it is closed to new ones.
type tally struct {
	mu     sync.Mutex
	n      int
	closed bool
	idle   chan struct{} // made by close, closed when n comes to zero
}

// enter counts one in, unless the tally is closed.
func (t *tally) enter() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	t.n++
	return true
}

// leave counts one out.
func (t *tally) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n--; t.n == 0 && t.closed {
		close(t.idle)
	}
}

// close lets nobody in any more; the channel closes when all have left.
func (t *tally) close() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.closed, t.idle = true, make(chan struct{})
		if t.n == 0 {
			close(t.idle)
		}
	}
	return t.idle
}
