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

	"github.com/docker/docker/api/types/container"
)

// stopGrace is how long a box has between SIGTERM and SIGKILL when ctx ends.
const stopGrace = 5 * time.Second

// runBox attaches, starts and waits.
func (e *Engine) runBox(ctx context.Context, b Box, box, gateway string) (int, error) {
	// The box outlives ctx by its grace.
	live, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	attach, attachErr := e.cli.ContainerAttach(live, box, container.AttachOptions{Stream: true, Stdin: b.Stdin != nil, Stdout: true, Stderr: true, DetachKeys: "ctrl-@,ctrl-@,ctrl-@"})
	if attachErr != nil {
		// Podman makes the process here; only its start tells what is wrong.
		if err := e.cli.ContainerStart(ctx, box, container.StartOptions{}); err != nil {
			return e.notStarted(b, gateway, err)
		}
		return 1, fmt.Errorf("attach to the box: %w", attachErr)
	}
	defer attach.Close()
	term, err := openTerminal(b)
	if err != nil {
		return 1, err
	}
	defer term.restore()
	resize := func() {
		if h, w, ok := term.size(); ok {
			_ = e.cli.ContainerResize(live, box, container.ResizeOptions{Height: h, Width: w})
		}
	}
	if e.kind == "podman" {
		resize()
	}
	if err := e.cli.ContainerStart(ctx, box, container.StartOptions{}); err != nil {
		return e.notStarted(b, gateway, err)
	}
	exited, waitErrs := e.wait(live, box)
	var gone <-chan int
	var goneErrs <-chan error
	if gateway != "" {
		gone, goneErrs = e.wait(live, gateway)
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
	stopped, ends, deaf := ctx.Done(), 0, false
	var kill, lost <-chan time.Time
	for {
		select {
		case code := <-exited:
			if deaf {
				return 128 + int(syscall.SIGPIPE), nil
			}
			if said != nil {
				output.drain(ctx.Done())
			}
			return code, ctx.Err()
		case err := <-said:
			said = nil
			if err != nil && output.refused.Load() { // nobody hears the box any more
				deaf = true
				_ = e.cli.ContainerKill(live, box, "SIGPIPE")
				kill = time.After(stopGrace)
			}
		case err := <-waitErrs:
			return 1, fmt.Errorf("wait for the box: the engine went away: %w", err)
		case <-gone:
			_ = e.cli.ContainerKill(live, box, "SIGKILL")
			return 1, errors.New("run the box: its gateway ended, so the box was ended too")
		case <-goneErrs:
			goneErrs = nil
		case sig := <-b.Signals:
			if s, ok := sig.(syscall.Signal); ok {
				if ends++; ends > 1 {
					s = syscall.SIGKILL // asked twice
				}
				_ = e.cli.ContainerKill(live, box, strconv.Itoa(int(s)))
			}
		case <-term.resized():
			resize()
		case <-stopped:
			stopped = nil
			_ = e.cli.ContainerKill(live, box, "SIGTERM")
			kill = time.After(stopGrace)
		case <-again:
			resize()
		case <-kill:
			_ = e.cli.ContainerKill(live, box, "SIGKILL")
			lost = time.After(stopGrace)
		case <-lost:
			return 1, errors.New("stop the box: the engine does not say that it ended")
		}
	}
}

// notStarted is the exit code and the error of a box that did not start.
func (e *Engine) notStarted(b Box, gateway string, err error) (int, error) {
	err = startError(b, err)
	if bad := (*CommandError)(nil); errors.As(err, &bad) {
		return bad.Code, err
	}
	if gateway == "" {
		return 1, err
	}
	// Its own ending is the reason, whatever the engine makes of it.
	ctx, cancel := context.WithTimeout(context.Background(), cleanupTime)
	defer cancel()
	if c, inspectErr := e.cli.ContainerInspect(ctx, gateway); inspectErr == nil && c.State != nil && !c.State.Running {
		return 1, fmt.Errorf("run the box: its gateway ended before the box began: %w", err)
	}
	return 1, err
}
