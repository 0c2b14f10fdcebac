package engine

import (
	"context"
	"errors"
	"io"
	"syscall"
	"time"

	"github.com/docker/docker/client"
)

// ErrEngine is what the error of a call is when not its subject but the engine
// is at fault.
var ErrEngine = errors.New("the engine failed")

// GoneError is returned when the engine ended while it was needed.
type GoneError struct{ why string }

// ErrorClass and ErrorReason are for --json.
func (*GoneError) ErrorClass() string  { return "unavailable" }
func (*GoneError) ErrorReason() string { return "engine_not_responding" }

// Is reports that a GoneError is an ErrEngine.
func (*GoneError) Is(target error) bool { return target == ErrEngine }

func (e *GoneError) Error() string { return "prepare the sandbox: " + e.why }

// Explain replaces an error by a [GoneError] or a [WaitError] where the engine's
// end, or its silence, is its cause.
func (e *Engine) Explain(err *error) {
	Unwrap(err)
	if *err == nil || errors.Is(*err, context.Canceled) ||
		errors.As(*err, new(*WaitError)) || errors.As(*err, new(*GoneError)) {
		return
	}
	lost := client.IsErrConnectionFailed(*err) || errors.Is(*err, io.EOF) || errors.Is(*err, io.ErrUnexpectedEOF) ||
		errors.Is(*err, syscall.ECONNRESET) || errors.Is(*err, syscall.ECONNREFUSED) || errors.Is(*err, syscall.EPIPE)
	if !lost {
		return
	}
	if why := e.WentAway(); why != "" {
		*err = &GoneError{why}
	}
}

// Unwrap replaces an error in which a wait was given up by the [WaitError],
// which is the whole message.
func Unwrap(err *error) {
	if waited := (*WaitError)(nil); errors.As(*err, &waited) {
		*err = waited
	}
}

// WentAway returns how the engine ended, for people; "" when it responds.
func (e *Engine) WentAway() string {
	if _, err := e.cli.Ping(context.Background()); !client.IsErrConnectionFailed(err) { // it ends with the engine
		return ""
	}
	if e.service != nil {
		select {
		case <-e.service.done:
			state := e.service.cmd.ProcessState
			how := "the service of podman that aileron had started was ended (" + state.String() + ")"
			if last := e.liveness.said(); last != "" && state.Exited() { // else a signal ended it
				how += ", its last error: " + last + ","
			}
			return how
		case <-time.After(time.Second): // a dead one is seen at once
		}
	}
	return e.Kind() + " does not respond on its socket any more"
}
