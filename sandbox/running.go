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

	"github.com/ALRubinger/aileron/internal/terminal"
	"github.com/ALRubinger/aileron/sandbox/carrier"
	"github.com/ALRubinger/aileron/sandbox/engine"
	"github.com/ALRubinger/aileron/sandbox/internal/output"
)

// stopGrace is how long a sandbox has between SIGTERM and SIGKILL when ctx ends.
const stopGrace = 5 * time.Second

// runBox attaches to a sandbox's container, starts it, and waits for its end. When nothing but the command's last
// output is left to wait for, it calls remove.
func (e *Engine) runBox(ctx context.Context, b box, made containers, remove func()) (code int, err error) {
	// The sandbox outlives ctx by its grace.
	live, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	r := &running{
		e: e, b: b, box: made.command, gateway: made.gateway, carrier: made.carrier, ready: made.ready,
		live: live, over: func() { cancel(); remove() },
		term: openTerminal(b), window: b.Window, stopped: ctx.Done(), moved: -1,
	}
	defer func() { r.close(err == nil && code == 0) }()
	if r.term.Exists() {
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

// openTerminal returns the person's terminal, for a sandbox that uses it.
func openTerminal(b box) *terminal.Terminal {
	in, okIn := b.Stdin.(*os.File)
	out, okOut := b.Stdout.(*os.File)
	if !b.TTY || !okIn || !okOut {
		return &terminal.Terminal{}
	}
	return terminal.Open(in, out, b.Terminal)
}

// running is a sandbox from its start to its end: its streams, and all that may
// end it.
type running struct {
	e            *Engine
	b            box
	box, gateway *engine.Container // gateway is nil where the sandbox has none
	carrier      *carrier.Carrier  // nil as gateway
	ready        func() error      // waits until the gateway is; nil as gateway
	live         context.Context   //nolint:containedctx // until the sandbox has ended
	over         func()            // ends live, and begins the removal

	term    *terminal.Terminal
	window  terminal.Size  // of the command's terminal, where term is none
	stream  *engine.Stream // the command's three streams
	early   []os.Signal    // arrived while it started
	began   time.Time      // when it had started
	output  *output.Output
	sigpipe chan os.Signal // a reader of ours went away
	uplink  *uplinkSockets

	exited       <-chan engine.Exit
	exitErrs     <-chan error
	gatewayExit  <-chan engine.Exit
	gatewayErrs  <-chan error
	processEnded <-chan struct{} // according to the kernel
	orphaned     <-chan struct{} // its monitor has ended and the process has not
	gatewayAlone <-chan struct{} // the same of the gateway
	outputEnded  <-chan error    // nil once it has
	stopped      <-chan struct{} // nil once ctx has ended
	resizeAgain  <-chan time.Time
	signalReady  <-chan time.Time // when to look again whether the first signal can be passed on
	kill         <-chan time.Time // when SIGTERM has had its time
	givenUp      <-chan struct{}  // when the engine is not waited for any longer
	endWait      func() error     // ends that wait, and returns why it was given up

	moved        int64             // of the output, when givenUp was received
	exhausted    engine.Exhaustion // what the sandbox ran out of
	last         engine.Exhaustion // the same, when its process ended; valid when processEnded is closed
	signalled    int               // how many signals of the person's have come
	firstSignal  syscall.Signal    // the first of them
	outputClosed bool              // the reader of the output is gone
}

// start attaches to the command's container and starts it, with a terminal if it
// has one. The exit code is that of a sandbox that did not start.
func (r *running) start(ctx context.Context) (int, error) {
	if r.b.Exposing != nil {
		r.b.Exposing()
	}
	// On Podman this makes the first process, which waits for the start. The gateway gets ready meanwhile.
	attachErr := r.attach(ctx)
	if r.ready != nil {
		if err := r.ready(); err != nil {
			return 1, err
		}
	}
	if r.alone() { // Podman would start the gateway again, for the sandbox
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
		return 1, fmt.Errorf("attach to the sandbox: %w", attachErr)
	}
	if size, ok := r.size(); ok {
		_ = r.e.ResizeCreated(ctx, r.box, size.Height, size.Width)
	}
	if r.b.Starting != nil {
		r.b.Starting()
	}
	var err error
	if r.early, err = r.e.StartInterruptible(ctx, r.box.ID, r.b.Signals); err != nil {
		if r.box.Abandoned() && !errors.Is(err, engine.ErrInterrupted) { // its terminal ended with the monitor
			return 1, r.unmonitored("the sandbox", r.box)
		}
		return r.e.notStarted(r.b, r.gateway, err)
	}
	if r.alone() {
		return 1, r.withoutGateway()
	}
	r.began = time.Now()
	r.e.Hold(ctx, r.box)
	if r.box.Abandoned() && !r.box.Ended() {
		return 1, r.unmonitored("the sandbox", r.box)
	}
	if missing := r.box.Unenforced(r.b.Limits); len(missing) > 0 && r.b.Unenforced != nil {
		r.b.Unenforced(missing)
	}
	// Until here Ctrl-C is a signal, and no output has been shown.
	r.e.Mute(r.b.TTY)
	return 1, r.term.Raw()
}

// attach attaches to the command's container.
func (r *running) attach(ctx context.Context) error {
	// No keys detach: a program in the sandbox may need any of them.
	opts := engine.AttachOptions{Stdin: r.b.Stdin != nil, TTY: r.b.TTY, DetachKeys: "ctrl-@,ctrl-@,ctrl-@"}
	return r.e.Await(ctx, "attach to a container", func(ctx context.Context) (err error) {
		r.stream, err = r.e.Attach(ctx, r.box.ID, opts)
		return err
	})
}

// follow begins to copy the command's streams, and to wait for all that may end
// it.
func (r *running) follow() (err error) {
	r.processEnded = r.box.Done(r.live, &r.last)
	r.orphaned = r.box.Orphaned(r.live)
	r.exited, r.exitErrs = r.e.Wait(r.live, r.box)
	if r.gateway != nil {
		r.gatewayAlone = r.gateway.Orphaned(r.live)
		r.gatewayExit, r.gatewayErrs = r.e.Wait(r.live, r.gateway)
	}
	r.resize()
	if !r.e.SizesCreated() && r.b.TTY { // it may have come before the program's terminal was ready
		r.resizeAgain = time.After(100 * time.Millisecond)
	}
	// A reader that went away (| head) must end the sandbox, not this process.
	r.sigpipe = make(chan os.Signal, 1)
	signal.Notify(r.sigpipe, syscall.SIGPIPE)
	r.output = passOn(r.b, r.stream)
	r.outputEnded = r.output.Ended
	if r.b.Stdin != nil {
		go func() {
			_, _ = io.Copy(r.stream, r.b.Stdin)
			_ = r.stream.CloseWrite()
		}()
	}
	r.uplink, err = watchUplink(r.b.Sockets)
	return err
}

// close releases what start and follow took. clean reports a command that ended
// by itself with code 0.
func (r *running) close(clean bool) {
	if r.endWait != nil {
		_ = r.endWait()
	}
	defer r.e.Mute(false)
	if r.uplink != nil {
		r.uplink.stop()
	}
	if r.sigpipe != nil {
		signal.Stop(r.sigpipe)
	}
	r.term.Restore(clean)
	if r.stream != nil {
		r.stream.Close()
	}
	if r.output != nil {
		r.output.Stop(output.GivenUp())
	}
}

// passOn begins to copy the output of a sandbox to its caller.
func passOn(b box, from *engine.Stream) *output.Output {
	o := output.New()
	go func() {
		o.End(from.CopyTo(o.Writer(b.Stdout), o.Writer(b.Stderr)))
		from.Discard()
	}()
	return o
}
