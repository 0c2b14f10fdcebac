package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/ALRubinger/aileron/internal/terminal"
	"github.com/ALRubinger/aileron/sandbox/engine"
	"github.com/ALRubinger/aileron/sandbox/internal/output"
	"github.com/ALRubinger/aileron/sandbox/native"
)

// runNativeBox starts a native sandbox, and waits for its end. What it leaves to beside need not be waited for by then.
func runNativeBox(ctx context.Context, b box, config native.Config, beside *sync.WaitGroup) (code int, err error) {
	if b.Exposing != nil {
		b.Exposing()
	}
	made, err := native.Start(config)
	if err != nil {
		return 1, err
	}
	defer made.Close()
	if ctx.Err() != nil {
		return 1, ctx.Err()
	}
	if len(made.Unenforced) > 0 && b.Unenforced != nil {
		b.Unenforced(made.Unenforced)
	}
	r := &nativeRunning{b: b, made: made, beside: beside, term: openTerminal(b), window: b.Window}
	defer func() { r.term.Restore(err == nil && code == 0) }()
	if r.term.Exists() {
		r.b.Stdout = r.term
	}
	r.resize()
	if b.Starting != nil {
		b.Starting()
	}
	if err := r.term.Raw(); err != nil {
		return 1, err
	}
	if err := made.Begin(); err != nil {
		if bad := (*native.CommandError)(nil); errors.As(err, &bad) {
			return bad.Code, nativeCommandError(bad)
		}
		return 1, err
	}
	if b.Began != nil {
		b.Began()
	}
	return r.watch(ctx)
}

// nativeRunning is a native sandbox whose command has begun.
type nativeRunning struct {
	b         box
	made      *native.Sandbox
	term      *terminal.Terminal
	window    terminal.Size
	output    *output.Output
	beside    *sync.WaitGroup
	signalled int
	killed    bool // by this process
}

// follow begins to copy the command's streams.
func (r *nativeRunning) follow() (closed <-chan struct{}) {
	refused := make(chan struct{}, 2)
	r.output = output.New()
	pass := func(to io.Writer, from io.Reader) {
		if _, err := io.Copy(r.output.Writer(to), from); err != nil && r.output.Refused() {
			refused <- struct{}{}
			_, _ = io.Copy(io.Discard, from)
		}
	}
	if r.made.Terminal != nil {
		go func() {
			pass(r.b.Stdout, r.made.Terminal)
			r.output.End(nil)
		}()
		if r.b.Stdin != nil {
			go func() { _, _ = io.Copy(r.made.Terminal, r.b.Stdin) }()
		}
		return refused
	}
	go func() {
		done := make(chan struct{})
		go func() { defer close(done); pass(r.b.Stderr, r.made.Stderr) }()
		pass(r.b.Stdout, r.made.Stdout)
		<-done
		r.output.End(nil)
	}()
	go func() {
		if r.b.Stdin != nil {
			_, _ = io.Copy(r.made.Stdin, r.b.Stdin)
		}
		_ = r.made.Stdin.Close()
	}()
	return refused
}

// maxLast is more than the kernel keeps of what a command has written to two pipes.
const maxLast = 4 << 20

// last passes on what a sandbox without processes has written, however slowly the caller takes it. The command may have
// given an end of its streams to a process that still runs, of another sandbox or of this host: that is not waited for,
// whatever it writes.
func (r *nativeRunning) last(giveUp <-chan struct{}) {
	const most = 3
	tick := time.NewTicker(output.QuietTime / most)
	defer tick.Stop()
	before := r.output.Moved()
	for quiet := 0; quiet < most && r.output.Moved()-before <= maxLast; {
		select {
		case <-r.output.Ended:
			return
		case <-giveUp: // a caller that takes no output is not waited for when it wants the end
			r.output.Wait(giveUp)
			return
		case <-tick.C:
			if !r.output.Writing() { // the kernel has nothing that was written before
				quiet++
			}
		}
	}
}

// close closes the command's streams, and ends the copy of its output as [output.Output.Stop] does.
func (r *nativeRunning) close(giveUp <-chan struct{}) {
	for _, f := range []io.Closer{r.made.Stdin, r.made.Stdout, r.made.Stderr} {
		if f != nil {
			_ = f.Close()
		}
	}
	if r.made.Terminal != nil {
		_ = r.made.Terminal.Close()
	}
	r.output.Stop(giveUp)
}

// watch waits for the end of the sandbox, and ends it when its uplink or the reader of its output is gone.
func (r *nativeRunning) watch(ctx context.Context) (int, error) {
	sigpipe := make(chan os.Signal, 1) // a reader that went away ends the sandbox, not this process
	signal.Notify(sigpipe, syscall.SIGPIPE)
	defer signal.Stop(sigpipe)
	closed := r.follow()
	defer r.close(output.GivenUp())
	uplink, err := watchUplink(r.b.Sockets)
	if err != nil {
		return 1, err
	}
	defer func() { r.beside.Go(uplink.stop) }() // for which the kernel takes some 15 ms
	stopped, kill := ctx.Done(), (<-chan time.Time)(nil)
	grace := func() <-chan time.Time { return time.After(cmp.Or(r.b.grace, stopGrace)) }
	for {
		select {
		case exit := <-r.made.Ended():
			return r.exit(ctx, exit)
		case <-closed:
			r.made.Signal(syscall.SIGPIPE)
			kill = grace()
		case <-uplink.changes:
			if err := r.withoutUplink(uplink); err != nil {
				return 1, err
			}
		case <-uplink.C:
			if err := r.withoutUplink(uplink); err != nil {
				return 1, err
			}
		case sig := <-r.b.Signals:
			r.passOn(sig)
		case <-r.term.Resized():
			r.resize()
		case r.window = <-r.b.Resized:
			r.resize()
		case <-stopped:
			stopped = nil
			r.made.Signal(syscall.SIGTERM)
			kill = grace()
		case <-kill:
			r.kill()
		}
	}
}

// exit returns what the command's exit code means, once all output has arrived.
func (r *nativeRunning) exit(ctx context.Context, exit native.Exit) (int, error) {
	if r.b.Ended != nil {
		r.b.Ended()
	}
	r.last(ctx.Done())
	r.close(ctx.Done())
	if r.made.OutOfMemory() && r.b.Exhausted != nil {
		r.b.Exhausted(engine.Exhaustion{Memory: true})
	}
	if r.output.Refused() {
		return 128 + int(syscall.SIGPIPE), nil
	}
	if exit.Killed && !r.killed {
		return 1, errors.New("run the sandbox: its first process was killed, so the sandbox was ended too")
	}
	return exit.Code, ctx.Err()
}

func (r *nativeRunning) withoutUplink(u *uplinkSockets) error {
	socket := u.removed()
	if socket == "" {
		return nil
	}
	r.kill()
	return fmt.Errorf("run the sandbox: %s was removed, and with it the sandbox's only uplink, "+
		"so the sandbox was ended", socket)
}

// passOn passes a signal of the person's on. The second one kills.
func (r *nativeRunning) passOn(sig os.Signal) {
	s, ok := sig.(syscall.Signal)
	if !ok {
		return
	}
	if r.signalled++; r.signalled > 1 || s == syscall.SIGKILL {
		r.kill()
		return
	}
	r.made.Signal(s)
}

// kill kills every process of the sandbox.
func (r *nativeRunning) kill() {
	r.killed = true
	r.made.Signal(syscall.SIGKILL)
}

// resize sets the size of the command's terminal.
func (r *nativeRunning) resize() {
	size, ok := r.term.Size()
	if !ok {
		size, ok = r.window, r.window != terminal.Size{}
	}
	if ok && r.made.Terminal != nil {
		_ = r.made.Resize(size.Height, size.Width)
	}
}
