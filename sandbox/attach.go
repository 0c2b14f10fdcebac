package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
)

// stopGrace is how long a box has between SIGTERM and SIGKILL when ctx ends.
const stopGrace = 5 * time.Second

// runBox attaches, starts and waits.
func (e *Engine) runBox(ctx context.Context, b Box, box, gateway *part) (int, error) {
	// The box outlives ctx by its grace.
	live, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	attach, attachErr := e.attach(ctx, box.id, container.AttachOptions{Stream: true, Stdin: b.Stdin != nil, Stdout: true, Stderr: true, DetachKeys: "ctrl-@,ctrl-@,ctrl-@"})
	if gateway != nil && gateway.handle.over() { // Podman would start it again, for the box
		return 1, e.withoutGateway(live, box, gateway)
	}
	if attachErr != nil && ctx.Err() != nil {
		return 1, ctx.Err()
	}
	if attachErr != nil {
		// Podman makes the process here; only its start tells what is wrong.
		if err := e.cli.ContainerStart(ctx, box.id, container.StartOptions{}); err != nil {
			return e.notStarted(b, gateway, err)
		}
		return 1, fmt.Errorf("attach to the box: %w", attachErr)
	}
	defer attach.Close()
	term := openTerminal(b)
	resize := func() {
		if h, w, ok := term.size(); ok {
			ctx, cancel := context.WithTimeout(live, callTime)
			defer cancel()
			_ = e.cli.ContainerResize(ctx, box.id, container.ResizeOptions{Height: h, Width: w})
		}
	}
	if e.kind == "podman" {
		resize()
	}
	if b.Starting != nil {
		b.Starting()
	}
	early, err := e.begin(ctx, b, box.id)
	if err != nil {
		return e.notStarted(b, gateway, err)
	}
	if gateway != nil && gateway.handle.over() {
		return 1, e.withoutGateway(live, box, gateway)
	}
	// Until here Ctrl-C is a signal, and nothing of the box has been shown.
	if err := term.raw(); err != nil {
		return 1, err
	}
	defer term.restore()
	box.handle, _ = e.hold(live, box.id)
	dead := box.handle.ended(live)
	exited, waitErrs := e.wait(live, box.id)
	var gone <-chan int
	var goneErrs <-chan error
	if gateway != nil {
		gone, goneErrs = e.wait(live, gateway.id)
	}
	resize()
	var again <-chan time.Time
	if e.kind == "docker" && b.TTY { // it may have come before the program's terminal was ready
		again = time.After(100 * time.Millisecond)
	}
	// A reader that went away (| head) must end the box, not this process.
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	defer signal.Stop(broken)
	output := startOutput(b, attach.Reader)
	said := output.ended
	if b.Stdin != nil {
		go func() {
			_, _ = io.Copy(attach.Conn, b.Stdin)
			_ = attach.CloseWrite()
		}()
	}
	line, err := watchLine(b.SocketDir)
	if err != nil {
		return 1, err
	}
	defer line.Stop()
	stopped, ends, deaf := ctx.Done(), 0, false
	asked := func(sig os.Signal) {
		if s, ok := sig.(syscall.Signal); ok {
			if ends++; ends > 1 {
				s = syscall.SIGKILL // asked twice
			}
			e.signal(live, box, s)
		}
	}
	for _, sig := range early {
		asked(sig)
	}
	var kill, lost, silent <-chan time.Time
	moved := int64(-1)
	for {
		select {
		case code := <-exited:
			if deaf {
				return 128 + int(syscall.SIGPIPE), nil
			}
			if code != 0 && gateway != nil && gateway.handle.over() { // perhaps the reason
				return 1, e.withoutGateway(live, box, gateway)
			}
			if code > 128 && ends == 0 && stopped != nil { // perhaps not the command's own end
				switch e.fateOf(live, box.id) {
				case removed:
					return 1, errRemoved
				case astray:
					return 1, errors.New("wait for the box: the engine ended it")
				}
			}
			if said != nil {
				output.drain(ctx.Done())
			}
			return code, ctx.Err()
		case err := <-said:
			said = nil
			if err != nil && output.refused.Load() { // nobody hears the box any more
				deaf = true
				e.signal(live, box, syscall.SIGPIPE)
				kill = time.After(stopGrace)
			}
		case err := <-waitErrs:
			if e.fateOf(live, box.id) == removed {
				return 1, errRemoved
			}
			return 1, fmt.Errorf("wait for the box: %w", err)
		case <-gone:
			return 1, e.withoutGateway(live, box, gateway)
		case <-goneErrs:
			goneErrs = nil
			if e.fateOf(live, gateway.id) == removed {
				return 1, e.withoutGateway(live, box, gateway)
			}
		case <-line.C:
			if why := line.cut(); why != "" {
				e.signal(live, box, syscall.SIGKILL)
				return 1, fmt.Errorf("run the box: %s was removed, and with it the only line of the box, so the box was ended", why)
			}
		case sig := <-b.Signals:
			asked(sig)
		case <-term.resized():
			resize()
		case <-stopped:
			stopped = nil
			e.signal(live, box, syscall.SIGTERM)
			kill = time.After(stopGrace)
		case <-again:
			resize()
		case <-kill:
			e.signal(live, box, syscall.SIGKILL)
			lost = time.After(stopGrace)
		case <-dead:
			dead = nil
			silent = time.After(2 * stopGrace)
		case <-silent:
			// An engine whose stream is held up does not see a box's end.
			if now := output.moved.Load(); now != moved || output.writing.Load() > 0 {
				moved, silent = now, time.After(2*stopGrace)
				continue
			}
			return 1, errors.New("wait for the box: it ended, and the engine does not say so")
		case <-lost:
			return 1, errors.New("stop the box: the engine does not say that it ended")
		}
	}
}

// notStarted is the exit code and the error of a box that did not start.
func (e *Engine) notStarted(b Box, gateway *part, err error) (int, error) {
	if errors.Is(err, ErrInterrupted) {
		return 1, err
	}
	err = startError(b, err)
	if bad := (*CommandError)(nil); errors.As(err, &bad) {
		return bad.Code, err
	}
	if gateway == nil {
		return 1, err
	}
	// Its own ending is the reason, whatever the engine makes of it.
	ctx, cancel := context.WithTimeout(context.Background(), cleanupTime)
	defer cancel()
	c, inspectErr := e.cli.ContainerInspect(ctx, gateway.id)
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
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
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

// signal sends a signal to a box. One that is paused goes on with it: who asks
// for an end means an end. Where the engine does not pass it on, the kernel
// does.
func (e *Engine) signal(ctx context.Context, p *part, sig syscall.Signal) {
	call := func(do func(context.Context) error) bool {
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
