package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"
)

// stopGrace is how long a box has between SIGTERM and SIGKILL when ctx ends.
const stopGrace = 5 * time.Second

// runBox attaches to a box, starts it, and waits for its end.
func (e *Engine) runBox(ctx context.Context, b Box, box, gateway *part) (code int, err error) {
	// The box outlives ctx by its grace.
	live, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	r := &running{e: e, b: b, box: box, gateway: gateway, live: live, term: openTerminal(b), stopped: ctx.Done(), moved: -1}
	defer func() { r.close(err == nil && code == 0) }()
	if r.term.out != nil {
		r.b.Stdout = r.term
	}
	if code, err := r.start(ctx); err != nil {
		return code, err
	}
	if b.Began != nil {
		b.Began()
	}
	if err := r.follow(); err != nil {
		return 1, err
	}
	return r.watch(ctx)
}

// running is a box from its start to its end: its streams, and whatever may
// end it.
type running struct {
	e            *Engine
	b            Box
	box, gateway *part           // gateway is nil where the box has none
	live         context.Context // until the box has ended

	term   *terminal
	stream *types.HijackedResponse // the box's three streams
	early  []os.Signal             // what came while it started
	output *output
	broken chan os.Signal // a reader of ours went away
	line   *line

	exited   <-chan int
	waitErrs <-chan error
	gone     <-chan int // the gateway's exit
	goneErrs <-chan error
	dead     <-chan struct{} // the kernel says that the box's process ended
	said     <-chan error    // nil once the output has ended
	stopped  <-chan struct{} // nil once ctx has ended
	again    <-chan time.Time
	kill     <-chan time.Time // when SIGTERM has had its time
	lost     <-chan time.Time // and when SIGKILL has
	silent   <-chan time.Time // when the engine should have told of the end
	moved    int64            // of the output, when silent was looked at
	asks     int              // how often somebody asked for the end
	deaf     bool             // nobody hears the box any more
}

// start attaches to the box and starts it, with a terminal if it has one. The
// exit code is that of a box which did not start.
func (r *running) start(ctx context.Context) (int, error) {
	stream, attachErr := r.e.attach(ctx, r.box.id, container.AttachOptions{Stream: true, Stdin: r.b.Stdin != nil, Stdout: true, Stderr: true, DetachKeys: "ctrl-@,ctrl-@,ctrl-@"})
	if attachErr == nil {
		r.stream = &stream
	}
	if r.alone() { // Podman would start the gateway again, for the box
		return 1, r.withoutGateway()
	}
	if attachErr != nil && ctx.Err() != nil {
		return 1, ctx.Err()
	}
	if attachErr != nil {
		// Podman makes the process here; only its start tells what is wrong.
		if err := r.e.cli.ContainerStart(ctx, r.box.id, container.StartOptions{}); err != nil {
			return r.e.notStarted(r.b, r.gateway, err)
		}
		return 1, fmt.Errorf("attach to the box: %w", attachErr)
	}
	if r.e.kind == "podman" {
		r.resize()
	}
	if r.b.Starting != nil {
		r.b.Starting()
	}
	var err error
	if r.early, err = r.e.begin(ctx, r.b, r.box.id); err != nil {
		return r.e.notStarted(r.b, r.gateway, err)
	}
	if r.alone() {
		return 1, r.withoutGateway()
	}
	// Until here Ctrl-C is a signal, and nothing of the box has been shown.
	return 1, r.term.raw()
}

// follow begins to carry the box's streams, and to wait for all that may end
// it.
func (r *running) follow() (err error) {
	r.box.handle, _ = r.e.hold(r.live, r.box.id)
	r.dead = r.box.handle.ended(r.live)
	r.exited, r.waitErrs = r.e.wait(r.live, r.box.id)
	if r.gateway != nil {
		r.gone, r.goneErrs = r.e.wait(r.live, r.gateway.id)
	}
	r.resize()
	if r.e.kind == "docker" && r.b.TTY { // it may have come before the program's terminal was ready
		r.again = time.After(100 * time.Millisecond)
	}
	// A reader that went away (| head) must end the box, not this process.
	r.broken = make(chan os.Signal, 1)
	signal.Notify(r.broken, syscall.SIGPIPE)
	r.output = startOutput(r.b, r.stream.Reader)
	r.said = r.output.ended
	if r.b.Stdin != nil {
		go func() {
			_, _ = io.Copy(r.stream.Conn, r.b.Stdin)
			_ = r.stream.CloseWrite()
		}()
	}
	r.line, err = watchLine(r.b.SocketDir)
	return err
}

// close releases what start and follow took. clean reports a command that
// ended by itself, and well.
func (r *running) close(clean bool) {
	if r.line != nil {
		r.line.Stop()
	}
	if r.broken != nil {
		signal.Stop(r.broken)
	}
	r.term.restore(clean)
	if r.stream != nil {
		r.stream.Close()
	}
}

// watch waits for the end of the box, and ends it where its line, its gateway
// or whoever runs it goes.
func (r *running) watch(ctx context.Context) (int, error) {
	for _, sig := range r.early {
		r.ask(sig)
	}
	for {
		select {
		case code := <-r.exited:
			return r.exit(ctx, code)
		case err := <-r.said:
			r.outputEnded(err)
		case err := <-r.waitErrs:
			if r.e.fateOf(r.live, r.box.id) == removed {
				return 1, errRemoved
			}
			return 1, fmt.Errorf("wait for the box: %w", err)
		case <-r.gone:
			return 1, r.withoutGateway()
		case <-r.goneErrs:
			r.goneErrs = nil
			if r.e.fateOf(r.live, r.gateway.id) == removed {
				return 1, r.withoutGateway()
			}
		case <-r.line.C:
			if why := r.line.cut(); why != "" {
				r.signal(syscall.SIGKILL)
				return 1, fmt.Errorf("run the box: %s was removed, and with it the only line of the box, so the box was ended", why)
			}
		case sig := <-r.b.Signals:
			r.ask(sig)
		case <-r.term.resized():
			r.resize()
		case <-r.again:
			r.resize()
		case <-r.stopped:
			r.stopped = nil
			r.signal(syscall.SIGTERM)
			r.kill = time.After(stopGrace)
		case <-r.kill:
			r.signal(syscall.SIGKILL)
			r.lost = time.After(stopGrace)
		case <-r.lost:
			return 1, errors.New("stop the box: the engine does not say that it ended")
		case <-r.dead:
			r.dead = nil
			r.silent = time.After(2 * stopGrace)
		case <-r.silent:
			if !r.flows() {
				return 1, errors.New("wait for the box: it ended, and the engine does not say so")
			}
			r.silent = time.After(2 * stopGrace)
		}
	}
}

// exit is what the box's exit code means, once all that it said has come.
func (r *running) exit(ctx context.Context, code int) (int, error) {
	if r.deaf {
		return 128 + int(syscall.SIGPIPE), nil
	}
	if code != 0 && r.alone() { // perhaps the reason
		return 1, r.withoutGateway()
	}
	if code > 128 && r.asks == 0 && r.stopped != nil { // perhaps not the command's own end
		switch r.e.fateOf(r.live, r.box.id) {
		case removed:
			return 1, errRemoved
		case astray:
			return 1, errors.New("wait for the box: the engine ended it")
		}
	}
	if r.said != nil {
		r.output.drain(ctx.Done())
	}
	return code, ctx.Err()
}

// outputEnded ends a box that nobody hears any more.
func (r *running) outputEnded(err error) {
	r.said = nil
	if err != nil && r.output.refused.Load() {
		r.deaf = true
		r.signal(syscall.SIGPIPE)
		r.kill = time.After(stopGrace)
	}
}

// ask passes a signal on. Who asks twice means it.
func (r *running) ask(sig os.Signal) {
	if s, ok := sig.(syscall.Signal); ok {
		if r.asks++; r.asks > 1 {
			s = syscall.SIGKILL
		}
		r.signal(s)
	}
}

func (r *running) signal(sig syscall.Signal) { r.e.signal(r.live, r.box, sig) }

// flows reports whether output has moved since the last look, or is about to:
// an engine whose stream is held up does not see a box's end.
func (r *running) flows() bool {
	now := r.output.moved.Load()
	flows := now != r.moved || r.output.writing.Load() > 0
	r.moved = now
	return flows
}

// resize gives the box's terminal the size of ours.
func (r *running) resize() {
	if h, w, ok := r.term.size(); ok {
		ctx, cancel := context.WithTimeout(r.live, callTime)
		defer cancel()
		_ = r.e.cli.ContainerResize(ctx, r.box.id, container.ResizeOptions{Height: h, Width: w})
	}
}

// alone reports a box whose gateway has ended.
func (r *running) alone() bool { return r.gateway != nil && r.gateway.handle.over() }

func (r *running) withoutGateway() error { return r.e.withoutGateway(r.live, r.box, r.gateway) }
