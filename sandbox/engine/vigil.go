package engine

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// vigil watches over an engine while something of it is waited for.
type vigil struct {
	p      *pulse
	step   string
	limit  time.Duration // 0: none
	giveUp context.CancelCauseFunc

	moved atomic.Int64 // of the response, in bytes
	quiet atomic.Bool  // the response itself is being shown

	stop context.CancelFunc
	done chan struct{}
}

// watch starts a vigil. It calls giveUp with a WaitError when it makes no sense
// to wait any longer, and lasts until end is called.
func (p *pulse) watch(ctx context.Context, step string, limit time.Duration, giveUp context.CancelCauseFunc) *vigil {
	ctx, stop := context.WithCancel(ctx)
	v := &vigil{p: p, step: step, limit: limit, giveUp: giveUp, stop: stop, done: make(chan struct{})}
	go func() {
		defer close(v.done)
		v.keep(ctx)
	}()
	return v
}

// end ends the vigil, and its report.
func (v *vigil) end() {
	v.stop()
	<-v.done
}

// signs are what a vigil has seen of its engine.
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

// lookEvery is the time between two looks.
const lookEvery = time.Second

// keep looks for signs of life each second.
func (v *vigil) keep(ctx context.Context) {
	now := time.Now()
	s := signs{began: now, looked: now, alive: now, moved: now, last: activityOf(v.p.pid)}
	pings := pinger{p: v.p, result: make(chan error, 1)}
	defer pings.end()
	defer func() {
		v.p.report(v, Wait{Engine: v.p.kind, Step: v.step, For: time.Since(s.began), Over: true})
	}()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case s.fault = <-pings.result:
			pings.busy = false
			if s.fault == nil {
				s.alive = time.Now()
				v.p.lost.Store(false)
			}
			continue
		case <-tick.C:
		}
		pings.start(ctx)
		v.look(&s)
		if err := v.judge(s); err != nil {
			v.p.lost.Store(!err.Lives)
			v.giveUp(err)
			return
		}
		if waited := time.Since(s.began); waited >= noticeAfter && !v.quiet.Load() {
			v.p.report(v, Wait{Engine: v.p.kind, Step: v.step, For: waited})
		}
	}
}

// look notes what can be seen of the engine without asking it.
func (v *vigil) look(s *signs) {
	now := time.Now()
	s.blind(now.Sub(s.looked) - lookEvery)
	s.looked = now
	if bytes := v.moved.Load(); bytes != s.bytes {
		s.bytes, s.alive, s.moved = bytes, now, now
	}
	seen := activityOf(v.p.pid)
	switch {
	case seen.stopped() && s.stopped.IsZero():
		s.stopped = now
	case seen.stopped():
	default:
		s.stopped = time.Time{}
		if seen.state != 0 && (v.p.ping == nil || seen.works(s.last)) {
			s.alive = now
		}
	}
	s.last = seen
}

// blind takes out a time without a look, in which this process was stopped, or
// wrote to a terminal that was: what the engine did meanwhile was not seen.
func (s *signs) blind(away time.Duration) {
	if away < lookEvery {
		return
	}
	s.alive, s.moved = s.alive.Add(away), s.moved.Add(away)
	if !s.stopped.IsZero() {
		s.stopped = s.stopped.Add(away)
	}
}

// judge returns why the engine is not waited for any longer; nil: it is.
func (v *vigil) judge(s signs) *WaitError {
	now := time.Now()
	silent := v.p.patience.silent()
	if v.p.lost.Load() {
		silent = min(silent, lostTime)
	}
	e := &WaitError{Engine: v.p.kind, Step: v.step, Waited: now.Sub(s.began)}
	switch {
	case !s.stopped.IsZero() && (now.Sub(s.stopped) >= stoppedTime || now.Sub(s.alive) >= silent):
		e.Why = fmt.Sprintf("its process %d is stopped (SIGSTOP); kill -CONT %d lets it go on", v.p.pid, v.p.pid)
	case now.Sub(s.alive) >= silent:
		e.Why = fmt.Sprintf("for %v there was no sign of life", now.Sub(s.alive).Round(time.Second))
	case v.limit > 0 && now.Sub(s.moved) >= v.limit:
		e.Why, e.Lives = "[sandbox] engine_timeout allows no more", true
	default:
		return nil
	}
	if s.fault != nil {
		e.Last = s.fault.Error()
	}
	if v.p.said != nil {
		if line := v.p.said(); line != "" {
			e.Last = line
		}
	}
	return e
}

// pinger pings an engine, once at a time.
type pinger struct {
	p      *pulse
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
