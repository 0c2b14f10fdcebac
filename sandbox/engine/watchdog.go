package engine

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// watchdog watches over an engine while something of it is waited for.
type watchdog struct {
	p      *liveness
	step   string
	limit  time.Duration // 0: none
	giveUp context.CancelCauseFunc

	moved atomic.Int64 // of the response, in bytes
	quiet atomic.Bool  // the response itself is being shown

	stop context.CancelFunc
	done chan struct{}
}

// watch starts a watchdog. It calls giveUp with a WaitError when it makes no sense
// to wait any longer, and lasts until end is called.
func (l *liveness) watch(
	ctx context.Context, step string, limit time.Duration, giveUp context.CancelCauseFunc,
) *watchdog {
	ctx, stop := context.WithCancel(ctx)
	w := &watchdog{p: l, step: step, limit: limit, giveUp: giveUp, stop: stop, done: make(chan struct{})}
	go func() {
		defer close(w.done)
		w.run(ctx)
	}()
	return w
}

// end ends the watchdog, and its report.
func (w *watchdog) end() {
	w.stop()
	<-w.done
}

// signs are what a watchdog has seen of its engine.
type signs struct {
	began   time.Time
	looked  time.Time // the last look
	alive   time.Time // the last sign of life
	moved   time.Time // the last byte of the response
	stopped time.Time // since when its process is stopped; zero: it is not
	bytes   int64
	last    activity
	fault   error // of the last ping
}

// checkInterval is the time between two looks.
const checkInterval = time.Second

// run looks for signs of life each second.
func (w *watchdog) run(ctx context.Context) {
	now := time.Now()
	s := signs{began: now, looked: now, alive: now, moved: now, last: activityOf(w.p.pid)}
	pings := pinger{p: w.p, result: make(chan error, 1)}
	defer pings.end()
	defer func() {
		w.p.report(w, Wait{Engine: w.p.kind, Step: w.step, For: time.Since(s.began), Over: true})
	}()
	tick := time.NewTicker(checkInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case s.fault = <-pings.result:
			pings.busy = false
			if s.fault == nil {
				s.alive = time.Now()
				w.p.lost.Store(false)
			}
			continue
		case <-tick.C:
		}
		pings.start(ctx)
		w.look(&s)
		if err := w.verdict(s); err != nil {
			w.p.lost.Store(!err.Lives)
			w.giveUp(err)
			return
		}
		if waited := time.Since(s.began); waited >= noticeAfter && !w.quiet.Load() {
			w.p.report(w, Wait{Engine: w.p.kind, Step: w.step, For: waited})
		}
	}
}

// look notes what can be seen of the engine without asking it.
func (w *watchdog) look(s *signs) {
	now := time.Now()
	s.skip(now.Sub(s.looked) - checkInterval)
	s.looked = now
	if bytes := w.moved.Load(); bytes != s.bytes {
		s.bytes, s.alive, s.moved = bytes, now, now
	}
	seen := activityOf(w.p.pid)
	switch {
	case seen.stopped() && s.stopped.IsZero():
		s.stopped = now
	case seen.stopped():
	default:
		s.stopped = time.Time{}
		if seen.state != 0 && (w.p.ping == nil || seen.works(s.last)) {
			s.alive = now
		}
	}
	s.last = seen
}

// skip disregards a time without a look, in which this process was stopped, or
// wrote to a terminal that was: what the engine did meanwhile was not seen.
func (s *signs) skip(away time.Duration) {
	if away < checkInterval {
		return
	}
	s.alive, s.moved = s.alive.Add(away), s.moved.Add(away)
	if !s.stopped.IsZero() {
		s.stopped = s.stopped.Add(away)
	}
}

// verdict returns why the engine is not waited for any longer; nil: it is.
func (w *watchdog) verdict(s signs) *WaitError {
	now := time.Now()
	silent := w.p.patience.silent()
	if w.p.lost.Load() {
		silent = min(silent, lostTime)
	}
	e := &WaitError{Engine: w.p.kind, Step: w.step, Waited: now.Sub(s.began)}
	switch {
	case !s.stopped.IsZero() && (now.Sub(s.stopped) >= stoppedTime || now.Sub(s.alive) >= silent):
		e.Why = fmt.Sprintf("its process %d is stopped (SIGSTOP); kill -CONT %d resumes it", w.p.pid, w.p.pid)
	case now.Sub(s.alive) >= silent:
		e.Why = fmt.Sprintf("for %v there was no sign of life", now.Sub(s.alive).Round(time.Second))
	case w.limit > 0 && now.Sub(s.moved) >= w.limit:
		e.Why, e.Lives = "[sandbox] engine_timeout allows no more", true
	default:
		return nil
	}
	if s.fault != nil {
		e.Last = s.fault.Error()
	}
	if w.p.said != nil {
		if line := w.p.said(); line != "" {
			e.Last = line
		}
	}
	return e
}

// pinger pings an engine, once at a time.
type pinger struct {
	p      *liveness
	busy   bool
	result chan error
	cancel context.CancelFunc
}

func (p *pinger) start(ctx context.Context) {
	if p.busy || p.p.ping == nil {
		return
	}
	p.end() // of the last one only its timer is left
	ctx, p.cancel = context.WithTimeout(ctx, p.p.patience.silent())
	p.busy = true
	go func() { p.result <- p.p.ping(ctx) }() // end waits for it
}

// end ends the ping that is under way.
func (p *pinger) end() {
	if p.cancel != nil {
		p.cancel()
	}
	if p.busy {
		<-p.result //nolint:errcheck // it was cancelled
	}
}
