package sandbox

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"syscall"

	"github.com/containerd/errdefs"
)

// notStarted is the exit code and the error of a box that did not start.
func (e *Engine) notStarted(b Box, gateway *part, err error) (int, error) {
	if errors.Is(err, ErrInterrupted) {
		return 1, err
	}
	if waited := (*WaitError)(nil); errors.As(err, &waited) {
		return 1, waited
	}
	err = startError(b, err)
	if bad := (*CommandError)(nil); errors.As(err, &bad) {
		return bad.Code, err
	}
	if gateway == nil {
		return 1, err
	}
	// Its own ending is the reason, whatever the engine makes of it.
	c, inspectErr := e.cli.ContainerInspect(context.Background(), gateway.id) // it ends with the engine
	if errdefs.IsNotFound(inspectErr) || inspectErr == nil && c.State != nil && !c.State.Running {
		return 1, fmt.Errorf("run the box: its gateway ended before the box began: %w", err)
	}
	return 1, err
}

var errRemoved = errors.New("run the box: somebody else removed its container")

// withoutGateway ends a box whose gateway has ended, and says how that ended.
func (e *Engine) withoutGateway(ctx context.Context, box, gateway *part) error {
	e.signal(ctx, box, syscall.SIGKILL)
	_ = e.fateOf(ctx, gateway.id) // it ends before it is removed
	how := ""
	c, err := e.cli.ContainerInspect(ctx, gateway.id)
	switch {
	case errdefs.IsNotFound(err):
		how = " (somebody else removed its container)"
	case err == nil && c.State != nil && c.State.OOMKilled:
		how = " (the kernel killed it for its memory)"
	case err == nil && c.State != nil && c.State.ExitCode > 128:
		how = " (" + syscall.Signal(c.State.ExitCode-128).String() + ")"
	}
	return fmt.Errorf("run the box: its gateway ended%s, so the box was ended too", how)
}

// signal sends a signal to a box. One that is paused is unpaused for it. Where
// the engine does not pass it on within callTime, the kernel does, if it can;
// else the engine is waited for.
func (e *Engine) signal(ctx context.Context, p *part, sig syscall.Signal) {
	call := func(do func(context.Context) error) bool {
		if p.handle == nil {
			return do(ctx) == nil
		}
		ctx, cancel := context.WithTimeout(ctx, callTime)
		defer cancel()
		return do(ctx) == nil
	}
	kill := func(ctx context.Context) error { return e.cli.ContainerKill(ctx, p.id, strconv.Itoa(int(sig))) }
	sent := call(kill) || p.handle.signal(sig)
	// Podman takes signals for a paused container, and keeps them.
	paused := false
	call(func(ctx context.Context) error {
		c, err := e.cli.ContainerInspect(ctx, p.id)
		paused = err == nil && c.State != nil && c.State.Paused
		return err
	})
	if !paused {
		return
	}
	call(func(ctx context.Context) error { return e.cli.ContainerUnpause(ctx, p.id) })
	if !sent {
		call(kill)
	}
}
