package proxy

import (
	"context"
	"sync"
	"time"
)

// inflight counts the exchanges under way, until it is closed to new ones.
type inflight struct {
	mu     sync.Mutex
	n      int
	most   int
	closed bool
	idle   chan struct{} // made by close, closed when n comes to zero
	room   chan struct{} // closed when one leaves; nil: none waits for that
}

// enterWait is how long an exchange waits for another to end. What had to make
// room for memory still counts until it has ended, and then leaves at once.
const enterWait = 2 * time.Second

// What enter returns.
const (
	entered = iota
	closed
	full
)

// enter counts one in, unless the count is closed or stays full for enterWait or
// until ctx ends.
func (t *inflight) enter(ctx context.Context) int {
	result, room := t.tryEnter()
	if result != full {
		return result
	}
	ctx, cancel := context.WithTimeout(ctx, enterWait)
	defer cancel()
	for result == full {
		select {
		case <-room:
			result, room = t.tryEnter()
		case <-ctx.Done():
			return full
		}
	}
	return result
}

// tryEnter counts one in. When it is full, room is closed as soon as
// another try is worth it.
func (t *inflight) tryEnter() (result int, room <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closed:
		return closed, nil
	case t.n >= t.most:
		if t.room == nil {
			t.room = make(chan struct{})
		}
		return full, t.room
	}
	t.n++
	return entered, nil
}

// leave counts one out.
func (t *inflight) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n--
	t.wake()
	if t.n == 0 && t.closed {
		close(t.idle)
	}
}

// wake lets those that wait try again. t.mu is held.
func (t *inflight) wake() {
	if t.room != nil {
		close(t.room)
		t.room = nil
	}
}

// close stops counting in. The channel that it returns is closed when all have left.
func (t *inflight) close() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.closed, t.idle = true, make(chan struct{})
		t.wake()
		if t.n == 0 {
			close(t.idle)
		}
	}
	return t.idle
}
