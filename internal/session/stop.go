package session

import (
	"context"
	"errors"
	"sync"
)

// StopRequest is a request to end a session, such as that of aileron session
// stop. It can be made at any time, before the session is open too, and cannot
// be withdrawn.
type StopRequest struct {
	requested chan struct{}
	once      sync.Once
}

// NewStopRequest returns a request that has not been made.
func NewStopRequest() *StopRequest { return &StopRequest{requested: make(chan struct{})} }

// Request makes the request.
func (r *StopRequest) Request() { r.once.Do(func() { close(r.requested) }) }

// Done is closed when the request is made.
func (r *StopRequest) Done() <-chan struct{} { return r.requested }

// Requested reports whether the request has been made.
func (r *StopRequest) Requested() bool {
	select {
	case <-r.requested:
		return true
	default:
		return false
	}
}

// WithStop returns a context that ends when the request is made.
func (r *StopRequest) WithStop(ctx context.Context) (context.Context, context.CancelFunc) {
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

// StoppedCause is the cause with which a session ends that was asked to stop.
const StoppedCause = "stopped by aileron session stop"

// ErrStopped is returned for a session that was stopped before its command
// began.
var ErrStopped = errors.New(StoppedCause)

// StoppedCode is the exit code of ErrStopped: a command that has begun is
// stopped by SIGTERM.
const StoppedCode = 143
