package proxy

import "sync"

// tally counts the exchanges under way, until it is closed to new ones.
type tally struct {
	mu     sync.Mutex
	n      int
	most   int
	closed bool
	idle   chan struct{} // made by close, closed when n comes to zero
}

// What enter says.
const (
	entered = iota
	closed
	full
)

// enter counts one in, unless the tally is closed or full.
func (t *tally) enter() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closed:
		return closed
	case t.n >= t.most:
		return full
	}
	t.n++
	return entered
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
