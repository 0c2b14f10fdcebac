package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/ALRubinger/aileron/internal/dirwatch"
	"github.com/ALRubinger/aileron/internal/terminal"
	"github.com/ALRubinger/aileron/sandbox/engine"
)

// watch waits for the end of the sandbox, and ends it when its uplink, its
// gateway or the reader of its output is gone.
func (r *running) watch(ctx context.Context) (int, error) {
	for _, sig := range r.early {
		r.passOn(sig)
	}
	for {
		select {
		case exit := <-r.exited:
			return r.exit(ctx, exit)
		case err := <-r.outputEnded:
			r.endWithOutput(err)
		case err := <-r.exitErrs:
			if errors.Is(err, engine.ErrUnreported) {
				return 1, r.unmonitored("the sandbox", r.box)
			}
			if r.e.Presence(r.live, r.box.ID) == engine.Removed {
				return 1, errRemoved
			}
			return 1, fmt.Errorf("wait for the sandbox: %w", err)
		case <-r.gatewayExit:
			return 1, r.withoutGateway()
		case <-r.gatewayErrs:
			r.gatewayErrs = nil
			if r.e.Presence(r.live, r.gateway.ID) == engine.Removed {
				return 1, r.withoutGateway()
			}
		case <-r.carrier.Ended():
			r.signal(syscall.SIGKILL)
			return 1, r.carrier.End(r.live)
		case <-r.orphaned:
			return 1, r.unmonitored("the sandbox", r.box)
		case <-r.gatewayAlone:
			return 1, r.unmonitored("its gateway", r.gateway)
		case <-r.uplink.changes:
			if err := r.withoutUplink(); err != nil {
				return 1, err
			}
		case <-r.uplink.C:
			r.box.Look(&r.exhausted)
			if err := r.withoutUplink(); err != nil {
				return 1, err
			}
		case sig := <-r.b.Signals:
			r.passOn(sig)
		case <-r.signalReady:
			r.passFirst()
		case <-r.term.Resized():
			r.resize()
		case r.window = <-r.b.Resized:
			r.resize()
		case <-r.resizeAgain:
			r.resize()
		case <-r.stopped:
			r.stopped = nil
			r.signal(syscall.SIGTERM)
			r.kill = time.After(cmp.Or(r.b.grace, stopGrace))
		case <-r.kill:
			r.signal(syscall.SIGKILL)
			r.expectEnd()
		case <-r.processEnded:
			r.processEnded = nil
			r.ended()
			r.exhausted.Add(r.last)
			r.expectEnd()
		case <-r.givenUp:
			if err := r.endWait(); !r.flows() {
				return 1, fmt.Errorf("wait for the sandbox: %w", err)
			}
			r.givenUp = nil
			r.expectEnd()
		}
	}
}

// ended reports that no process of the command is left: the first one of a namespace ends after all others
// (pid_namespaces(7)).
func (r *running) ended() {
	if r.b.Ended != nil {
		r.b.Ended()
	}
}

// expectEnd begins to wait for the engine to report the end of the command: its
// process has ended, or was killed.
func (r *running) expectEnd() {
	if r.givenUp == nil {
		r.givenUp, r.endWait = r.e.Expect(r.live, "report the end of a container")
	}
}

// exit returns what the command's exit code means, once all output has arrived.
func (r *running) exit(ctx context.Context, exit engine.Exit) (int, error) {
	r.ended()
	state := r.reportExhaustion(exit)
	code := exit.Code
	if r.outputClosed {
		return 128 + int(syscall.SIGPIPE), nil
	}
	if code != 0 && r.alone() { // perhaps the reason
		return 1, r.withoutGateway()
	}
	if code > 128 && r.signalled == 0 && r.stopped != nil { // perhaps not the command's own end
		if r.box.Unreported(state) {
			return 1, r.unmonitored("the sandbox", r.box)
		}
		switch r.e.Presence(r.live, r.box.ID) {
		case engine.Removed:
			return 1, errRemoved
		case engine.Unreachable:
			return 1, errors.New("wait for the sandbox: the engine ended it")
		}
	}
	r.over()
	if r.outputEnded != nil {
		r.output.Drain(ctx.Done())
	}
	return code, ctx.Err()
}

// reportExhaustion reports what the sandbox ran out of, according to the kernel
// and the engine, and returns its last state, as far as the engine knows it.
func (r *running) reportExhaustion(exit engine.Exit) (last engine.State) {
	if r.processEnded != nil && r.box.Held() {
		select {
		case <-r.processEnded: // as the engine has reported
			r.exhausted.Add(r.last)
		case <-time.After(time.Second):
		}
	}
	if exit.State == nil {
		last, _ = r.e.Inspect(r.live, r.box.ID)
	} else {
		last = *exit.State
	}
	r.exhausted.Memory = r.exhausted.Memory || last.OOMKilled
	if r.exhausted != (engine.Exhaustion{}) && r.b.Exhausted != nil {
		r.b.Exhausted(r.exhausted)
	}
	return last
}

// endWithOutput ends a sandbox whose output has no reader any more.
func (r *running) endWithOutput(err error) {
	r.outputEnded = nil
	if err != nil && r.output.Refused() {
		r.outputClosed = true
		r.signal(syscall.SIGPIPE)
		r.kill = time.After(cmp.Or(r.b.grace, stopGrace))
	}
}

// signalWait is how long after its start the command's init may not be ready for
// signals yet, on the busiest machine.
const signalWait = time.Minute

// passOn passes a signal of the person's on. The second one kills.
func (r *running) passOn(sig os.Signal) {
	s, ok := sig.(syscall.Signal)
	if !ok {
		return
	}
	if r.signalled++; r.signalled > 1 {
		r.signalReady = nil
		r.signal(syscall.SIGKILL)
		return
	}
	r.firstSignal = s
	r.passFirst()
}

// passFirst passes the first signal on, once it is not lost. Until then r.signalReady
// says when to try again.
func (r *running) passFirst() {
	r.signalReady = nil
	if since := time.Since(r.began); since < signalWait && !r.box.TakesSignal(r.firstSignal, since) {
		r.signalReady = time.After(5 * time.Millisecond)
		return
	}
	r.signal(r.firstSignal)
}

func (r *running) signal(sig syscall.Signal) { r.e.Signal(r.live, r.box, sig) }

// flows reports whether output has moved since the last call, or is about to: an
// engine whose stream is held up does not notice the end of a container.
func (r *running) flows() bool {
	now := r.output.Moved()
	flows := now != r.moved || r.output.Writing()
	r.moved = now
	return flows
}

// size returns the size that the sandbox's terminal is to have: that of the
// person's, or the one that was asked for.
func (r *running) size() (_ terminal.Size, ok bool) {
	if size, ok := r.term.Size(); ok {
		return size, true
	}
	return r.window, r.window != terminal.Size{}
}

// resize sets the size of the sandbox's terminal.
func (r *running) resize() {
	if size, ok := r.size(); ok {
		_ = r.e.Resize(r.live, r.box.ID, size.Height, size.Width)
	}
}

// alone reports whether the gateway has ended.
func (r *running) alone() bool { return r.gateway != nil && r.gateway.Ended() }

// withoutUplink ends a sandbox one of whose sockets is gone, and returns that as its error; nil: none is.
func (r *running) withoutUplink() error {
	socket := r.uplink.removed()
	if socket == "" {
		return nil
	}
	r.signal(syscall.SIGKILL)
	return fmt.Errorf("run the sandbox: %s was removed, and with it the sandbox's only uplink, "+
		"so the sandbox was ended", socket)
}

func (r *running) withoutGateway() error { return r.e.withoutGateway(r.live, r.box, r.gateway) }

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

// unmonitored ends a sandbox one of whose containers has lost its monitor, and
// returns that as its error.
func (r *running) unmonitored(whose string, c *engine.Container) error {
	r.signal(syscall.SIGKILL)
	monitor := cmp.Or(c.Monitor, map[string]string{"podman": "conmon", "docker": "containerd-shim"}[r.e.Kind()])
	return fmt.Errorf("run the sandbox: %s, %s's monitor of %s, ended, so the sandbox was ended too; run it again",
		monitor, r.e.Kind(), whose)
}

// socketNames are the sockets in Uplink.Sockets at which all that a sealed
// sandbox sends ends.
var socketNames = []string{"proxy.sock", "redirect.sock"}

const (
	// lookEvery is the time between two looks at a sandbox, and its sockets.
	lookEvery = time.Second
	// restEvery is that where the kernel reports a socket that is removed.
	restEvery = 4 * time.Second
)

// uplinkSockets watches the sockets of a sandbox. Without one of them it reaches
// nothing any more, and no program inside could find out why.
type uplinkSockets struct {
	*time.Ticker
	changes <-chan struct{} // has a value when one may have been removed; nil: the kernel reports nothing
	reports *dirwatch.Watch // nil: none
	paths   []string
	files   []os.FileInfo
}

// watchUplink starts to watch; where there are no sockets there is nothing to
// watch.
func watchUplink(dir string) (*uplinkSockets, error) {
	u := &uplinkSockets{}
	every := lookEvery
	if reports, err := dirwatch.New(dirwatch.Dir{Path: dir, Names: socketNames}); err == nil {
		if reports.Follow() == nil {
			u.changes, every = reports.C, restEvery
		}
		u.reports = reports
	}
	for _, name := range socketNames {
		path := filepath.Join(dir, name)
		info, err := os.Stat(path)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			u.stop()
			return nil, fmt.Errorf("watch the sandbox's sockets: %w", err)
		}
		u.paths, u.files = append(u.paths, path), append(u.files, info)
	}
	u.Ticker = time.NewTicker(every)
	return u, nil
}

// stop ends the watch.
func (u *uplinkSockets) stop() {
	if u.reports != nil {
		u.reports.Close()
	}
	if u.Ticker != nil {
		u.Stop()
	}
}

// removed is a socket that is not there any more, or not the same; "" when all
// are.
func (u *uplinkSockets) removed() string {
	for i, path := range u.paths {
		if now, err := os.Stat(path); err != nil || !os.SameFile(now, u.files[i]) {
			return path
		}
	}
	return ""
}
