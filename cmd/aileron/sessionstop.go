package main

import (
	"context"
	"errors"
	"sync"
	"time"
)

// stopRequest is a request to end a session, by aileron session stop. It is
// made once, at any time in a session's life.
type stopRequest struct {
	requested chan struct{}
	once      sync.Once
}

func newStopRequest() *stopRequest { return &stopRequest{requested: make(chan struct{})} }

// make makes the request.
func (r *stopRequest) make() { r.once.Do(func() { close(r.requested) }) }

// made reports whether the request has been made.
func (r *stopRequest) made() bool {
	select {
	case <-r.requested:
		return true
	default:
		return false
	}
}

// withStop is a context that ends when the request is made.
func (r *stopRequest) withStop(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-r.requested:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// stoppedCause is the cause of a session that was asked to stop.
const stoppedCause = "stopped by aileron session stop"

// errStopped is a session that was stopped before its command began.
var errStopped = errors.New(stoppedCause)

// stoppedCode is the exit code of errStopped: the stop of a command that has
// begun is a SIGTERM.
const stoppedCode = 143

// closeFailed closes a session whose command did not begin. Why it did not is
// what the person reads: rows that are not in the log are logged beside it.
func (s *session) closeFailed(ctx context.Context) {
	code, cause := 1, "failed to start"
	if s.stopping.made() {
		code, cause = stoppedCode, stoppedCause
	}
	_ = s.app.unrecorded(code, s.close(ctx, code, cause))
}

// stopGrace is how long the command of aileron run has between SIGTERM and
// SIGKILL when its session is stopped, as one in a box does.
const stopGrace = 5 * time.Second
