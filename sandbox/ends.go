package sandbox

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/ALRubinger/aileron/sandbox/engine"
)

// notStarted is the exit code and the error of a sandbox that did not start.
func (e *Engine) notStarted(b box, gateway *engine.Container, err error) (int, error) {
	if errors.Is(err, engine.ErrInterrupted) {
		return 1, err
	}
	if waited := (*engine.WaitError)(nil); errors.As(err, &waited) {
		return 1, waited
	}
	err = startError(b, err)
	if bad := (*CommandError)(nil); errors.As(err, &bad) {
		return bad.Code, err
	}
	if gateway == nil {
		return 1, err
	}
	// Its own end is the reason, whatever the engine reports.
	c, inspectErr := e.Inspect(context.Background(), gateway.ID) // it ends with the engine
	if engine.IsNotFound(inspectErr) || inspectErr == nil && !c.Running {
		return 1, fmt.Errorf("run the sandbox: its gateway ended before the sandbox began: %w", err)
	}
	return 1, err
}

var errRemoved = errors.New("run the sandbox: its container was removed by another process")

// withoutGateway ends a sandbox whose gateway has ended, and returns how that
// ended.
func (e *Engine) withoutGateway(ctx context.Context, box, gateway *engine.Container) error {
	e.Signal(ctx, box, syscall.SIGKILL)
	_ = e.Presence(ctx, gateway.ID) // it ends before it is removed
	how := ""
	c, err := e.Inspect(ctx, gateway.ID)
	switch {
	case engine.IsNotFound(err):
		how = " (its container was removed by another process)"
	case err == nil && c.OOMKilled:
		how = " (the kernel killed it for its memory)"
	case err == nil && c.ExitCode > 128:
		how = " (" + syscall.Signal(c.ExitCode-128).String() + ")"
	}
	return fmt.Errorf("run the sandbox: its gateway ended%s, so the sandbox was ended too", how)
}
