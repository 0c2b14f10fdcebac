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
	room   chan struct{} // closed when one leaves; nil: no exchange waits for that
}

// enterWait is how long an exchange waits for another to end. One that was shed to
// free memory still counts until it has ended, which takes a moment.
const enterWait = 2 * time.Second

// admission is whether an exchange may begin.
type admission int

const (
	entered admission = iota
	closed            // the session is ending
	full              // too many are under way
)

// enter counts an exchange in, unless the count is closed, or stays full for
// enterWait or until ctx ends.
func (f *inflight) enter(ctx context.Context) admission {
	result, room := f.tryEnter()
	if result != full {
		return result
	}
	ctx, cancel := context.WithTimeout(ctx, enterWait)
	defer cancel()
	for result == full {
		select {
		case <-room:
			result, room = f.tryEnter()
		case <-ctx.Done():
			return full
		}
	}
	return result
}

// tryEnter counts an exchange in. When the count is full, room is closed as soon as
// another try is worthwhile.
func (f *inflight) tryEnter() (result admission, room <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.closed:
		return closed, nil
	case f.n >= f.most:
		if f.room == nil {
			f.room = make(chan struct{})
		}
		return full, f.room
	}
	f.n++
	return entered, nil
}

// leave counts an exchange out.
func (f *inflight) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.n--
	f.wake()
	if f.n == 0 && f.closed {
		close(f.idle)
	}
}

// wake makes the exchanges that wait try again. f.mu is held.
func (f *inflight) wake() {
	if f.room != nil {
		close(f.room)
		f.room = nil
	}
}

// close rejects new exchanges, and returns a channel that is closed when all have
// left.
func (f *inflight) close() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.closed {
		f.closed, f.idle = true, make(chan struct{})
		f.wake()
		if f.n == 0 {
			close(f.idle)
		}
	}
	return f.idle
}
