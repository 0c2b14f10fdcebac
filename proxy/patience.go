package proxy

import (
	"context"
	"sync"
	"time"
)

// patience is a context that ends after a time, for one wait at a time. Its timer
// runs only while something waits for it, and serves every wait: most rows are
// recorded without any.
type patience struct {
	until time.Time

	mu    sync.Mutex
	timer *time.Timer   // closes done; nil: nothing has waited yet
	done  chan struct{} // of the timer
	runs  bool          // the timer does, for this wait
}

var _ context.Context = (*patience)(nil)

// begin begins a wait. It must be followed by end.
func (p *patience) begin(span time.Duration) context.Context {
	p.until = time.Now().Add(span)
	return p
}

// end ends the wait. Nothing may use its context any more.
func (p *patience) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.runs && !p.timer.Stop() {
		p.timer, p.done = nil, nil // it has fired, or is about to
	}
	p.runs = false
}

// Deadline implements context.Context.
func (p *patience) Deadline() (time.Time, bool) { return p.until, true }

// Done implements context.Context. It starts the timer.
func (p *patience) Done() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch left := time.Until(p.until); {
	case p.runs:
	case p.timer == nil:
		done := make(chan struct{})
		p.done, p.timer = done, time.AfterFunc(left, func() { close(done) })
	default:
		p.timer.Reset(left)
	}
	p.runs = true
	return p.done
}

// Err implements context.Context.
func (p *patience) Err() error {
	if time.Now().Before(p.until) {
		return nil
	}
	return context.DeadlineExceeded
}

// Value implements context.Context: there is none.
func (p *patience) Value(any) any { return nil }
