package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/ALRubinger/aileron/sandbox/engine"
)

// watch waits for the end of the box, and ends it where its line, its gateway
// or the person who runs it goes.
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
			if r.e.Presence(r.live, r.box.ID) == engine.Removed {
				return 1, errRemoved
			}
			return 1, fmt.Errorf("wait for the box: %w", err)
		case <-r.gone:
			return 1, r.withoutGateway()
		case <-r.goneErrs:
			r.goneErrs = nil
			if r.e.Presence(r.live, r.gateway.ID) == engine.Removed {
				return 1, r.withoutGateway()
			}
		case <-r.uplink.C:
			r.box.Look(&r.exhausted)
			if socket := r.uplink.removed(); socket != "" {
				r.signal(syscall.SIGKILL)
				return 1, fmt.Errorf("run the box: %s was removed, and with it the only line of the box, so the box was ended",
					socket)
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
			r.expectEnd()
		case <-r.dead:
			r.dead = nil
			r.exhausted.Add(r.last)
			r.expectEnd()
		case <-r.given:
			if err := r.endless(); !r.flows() {
				return 1, fmt.Errorf("wait for the box: %w", err)
			}
			r.given = nil
			r.expectEnd()
		}
	}
}

// expectEnd begins to wait for the engine's word that the box has ended: its
// process has, or was killed.
func (r *running) expectEnd() {
	if r.given != nil {
		return
	}
	r.given, r.endless = r.e.Expect(r.live, "report the end of a container")
}

// exit is what the box's exit code means, once all that it said has come.
func (r *running) exit(ctx context.Context, code int) (int, error) {
	r.reportExhaustion()
	if r.deaf {
		return 128 + int(syscall.SIGPIPE), nil
	}
	if code != 0 && r.alone() { // perhaps the reason
		return 1, r.withoutGateway()
	}
	if code > 128 && r.asks == 0 && r.stopped != nil { // perhaps not the command's own end
		switch r.e.Presence(r.live, r.box.ID) {
		case engine.Removed:
			return 1, errRemoved
		case engine.Unreachable:
			return 1, errors.New("wait for the box: the engine ended it")
		}
	}
	if r.said != nil {
		r.output.drain(ctx.Done())
	}
	return code, ctx.Err()
}

// reportExhaustion reports what the box ran out of, as the kernel and the engine
// have it.
func (r *running) reportExhaustion() {
	if r.dead != nil && r.box.Held() {
		select {
		case <-r.dead: // as the engine has said
			r.exhausted.Add(r.last)
		case <-time.After(time.Second):
		}
	}
	if c, err := r.e.Inspect(r.live, r.box.ID); err == nil && c.OOMKilled {
		r.exhausted.Memory = true
	}
	if r.exhausted != (Exhaustion{}) && r.b.Exhausted != nil {
		r.b.Exhausted(r.exhausted)
	}
}

// outputEnded ends a box whose output is closed.
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

func (r *running) signal(sig syscall.Signal) { r.e.Signal(r.live, r.box, sig) }

// flows reports whether output has moved since the last look, or is about to:
// an engine whose stream is held up does not see a box's end.
func (r *running) flows() bool {
	now := r.output.moved.Load()
	flows := now != r.moved || r.output.writing.Load() > 0
	r.moved = now
	return flows
}

// resize sets the size of the box's terminal to that of ours.
func (r *running) resize() {
	if h, w, ok := r.term.size(); ok {
		_ = r.e.Resize(r.live, r.box.ID, h, w)
	}
}

// alone reports a box whose gateway has ended.
func (r *running) alone() bool { return r.gateway != nil && r.gateway.Ended() }

func (r *running) withoutGateway() error { return r.e.withoutGateway(r.live, r.box, r.gateway) }
