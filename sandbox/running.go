package sandbox

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/ALRubinger/aileron/sandbox/engine"
)

// stopGrace is how long a box has between SIGTERM and SIGKILL when ctx ends.
const stopGrace = 5 * time.Second

// runBox attaches to a box, starts it, and waits for its end.
func (e *Engine) runBox(ctx context.Context, b Box, box, gateway *engine.Container) (code int, err error) {
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
	box, gateway *engine.Container // gateway is nil where the box has none
	live         context.Context   //nolint:containedctx // until the box has ended

	term   *terminal
	stream *engine.Stream // the box's three streams
	early  []os.Signal    // what came while it started
	output *output
	broken chan os.Signal // a reader of ours went away
	uplink *uplinkSockets

	exited    <-chan int
	waitErrs  <-chan error
	gone      <-chan int // the gateway's exit
	goneErrs  <-chan error
	dead      <-chan struct{} // the kernel says that the box's process ended
	said      <-chan error    // nil once the output has ended
	stopped   <-chan struct{} // nil once ctx has ended
	again     <-chan time.Time
	kill      <-chan time.Time // when SIGTERM has had its time
	given     <-chan struct{}  // when the engine is not waited for any longer
	endless   func() error     // ends that wait, and returns why it was given up
	moved     int64            // of the output, when given was looked at
	exhausted Exhaustion       // what the box ran out of
	last      Exhaustion       // the same, when its process ended; valid when dead is closed
	asks      int              // how often the end was asked for
	deaf      bool             // the output of the box is closed
}

// start attaches to the box and starts it, with a terminal if it has one. The
// exit code is that of a box which did not start.
func (r *running) start(ctx context.Context) (int, error) {
	var attachErr error
	r.stream, attachErr = r.attach(ctx, engine.AttachOptions{
		Stdin: r.b.Stdin != nil, TTY: r.b.TTY, DetachKeys: "ctrl-@,ctrl-@,ctrl-@"})
	if r.alone() { // Podman would start the gateway again, for the box
		return 1, r.withoutGateway()
	}
	if attachErr != nil && ctx.Err() != nil {
		return 1, ctx.Err()
	}
	if attachErr != nil {
		// Podman makes the process here; only the error of its start has the cause.
		if err := r.e.Start(ctx, r.box.ID); err != nil {
			return r.e.notStarted(r.b, r.gateway, err)
		}
		return 1, fmt.Errorf("attach to the box: %w", attachErr)
	}
	if r.e.SizesCreated() {
		r.resize()
	}
	if r.b.Starting != nil {
		r.b.Starting()
	}
	var err error
	if r.early, err = r.e.StartInterruptible(ctx, r.box.ID, r.b.Signals); err != nil {
		return r.e.notStarted(r.b, r.gateway, err)
	}
	if r.alone() {
		return 1, r.withoutGateway()
	}
	r.e.Hold(ctx, r.box)
	if missing := r.box.Unenforced(r.b.Limits); len(missing) > 0 && r.b.Unenforced != nil {
		r.b.Unenforced(missing)
	}
	// Until here Ctrl-C is a signal, and nothing of the box has been shown.
	r.e.Mute(r.b.TTY)
	return 1, r.term.raw()
}

// attach attaches to the box.
func (r *running) attach(ctx context.Context, opts engine.AttachOptions) (stream *engine.Stream, err error) {
	err = r.e.Await(ctx, "attach to a container", func(ctx context.Context) error {
		stream, err = r.e.Attach(ctx, r.box.ID, opts)
		return err
	})
	return stream, err
}

// follow begins to carry the box's streams, and to wait for all that may end
// it.
func (r *running) follow() (err error) {
	r.dead = r.box.Done(r.live, &r.last)
	r.exited, r.waitErrs = r.e.Wait(r.live, r.box.ID)
	if r.gateway != nil {
		r.gone, r.goneErrs = r.e.Wait(r.live, r.gateway.ID)
	}
	r.resize()
	if !r.e.SizesCreated() && r.b.TTY { // it may have come before the program's terminal was ready
		r.again = time.After(100 * time.Millisecond)
	}
	// A reader that went away (| head) must end the box, not this process.
	r.broken = make(chan os.Signal, 1)
	signal.Notify(r.broken, syscall.SIGPIPE)
	r.output = startOutput(r.b, r.stream)
	r.said = r.output.ended
	if r.b.Stdin != nil {
		go func() {
			_, _ = io.Copy(r.stream, r.b.Stdin)
			_ = r.stream.CloseWrite()
		}()
	}
	r.uplink, err = watchUplink(r.b.SocketDir)
	return err
}

// close releases what start and follow took. clean reports a command that
// ended by itself, and well.
func (r *running) close(clean bool) {
	if r.endless != nil {
		_ = r.endless()
	}
	defer r.e.Mute(false)
	if r.uplink != nil {
		r.uplink.Stop()
	}
	if r.broken != nil {
		signal.Stop(r.broken)
	}
	r.term.restore(clean)
	if r.stream != nil {
		r.stream.Close()
	}
}
