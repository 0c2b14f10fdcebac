// Package fair shares the processor time of one session among the bodies that it carries. All of their bytes are
// encrypted, and most are searched. A client decides how many bodies there are, and an upstream how much work they are.
//
// [New] returns the one [Scheduler] of a session. Each body has a [Stream], which takes a turn for each piece:
//
//	stream.Reset(scheduler, ctx)
//	if err := stream.Begin(len(piece)); err != nil {
//		return err // ctx has ended
//	}
//	search(piece)
//	stream.End()
//
// Between Begin and End a goroutine computes, and waits for nothing. Turns leave one processor to everything else. If
// others wait, the next turn is that of the stream that has used the least lately: small bodies, and streams of events,
// go before large ones. A first piece that is small takes no turn.
//
// With a bound, no turn begins while the process is over it. All processor time of the process counts, not only that of
// the turns.
package fair

import (
	"context"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// credit is how much a stream that has rested is ahead of those that have not: all of a small body.
const credit = int64(4 * time.Millisecond)

// unturned is how many bytes the first piece of a body may have that takes no turn: for as many as a response of an
// API has, to hand turns on would cost more than what they share.
const unturned = 4 << 10

// eldest is how often a turn is that of the stream that has waited for longest, whatever it used: one in so many.
const eldest = 8

// The cost of a turn is the time that it took, which is more than its processor time where the kernel gave the
// processor to another process. No search of a piece costs more than this, and the rest of the work on a piece (TLS
// on both sides, system calls) about so much.
const (
	mostOfTurn = 20 * int64(time.Microsecond)
	mostOfByte = 250 // in nanoseconds
	ofByte     = 1   // likewise
	usual      = 20  // likewise: what is expected of a turn that is waited for
)

// Scheduler decides whose turn it is. A nil Scheduler lets everything run at once. All its methods, and those of
// different streams, are safe for concurrent use.
type Scheduler struct {
	slots   atomic.Int64 // turns that may begin
	waiting atomic.Int64 // len(queue)
	now     atomic.Int64 // virtual: where the latest stream that got a turn began it
	bound   *bound       // nil: none

	mu     sync.Mutex
	queue  []*Stream // the longest waiting first
	grants int       // turns that began in the queue
	timer  *time.Timer
}

// New returns a scheduler. cpus is how many processors the process may use, and 0 is no bound: see [Least].
func New(cpus float64) *Scheduler {
	s := newScheduler(turnsAtOnce(cpus, runtime.GOMAXPROCS(0)))
	if cpus > 0 {
		s.bound = newBound(cpus, processTime)
	}
	return s
}

func newScheduler(turns int64) *Scheduler {
	s := &Scheduler{}
	s.slots.Store(turns)
	return s
}

// turnsAtOnce returns how many turns are taken at once: one processor, of those that the runtime uses, is left to what
// needs no turn.
func turnsAtOnce(cpus float64, procs int) int64 {
	n := int64(max(procs-1, 1))
	if cpus > 0 {
		n = min(n, int64(math.Ceil(cpus)))
	}
	return n
}

// Waiting returns how many streams wait for their turn.
func (s *Scheduler) Waiting() int { return int(s.waiting.Load()) }

// Stream takes the turns of one body. The zero value takes them without waiting. It is not safe for concurrent use.
type Stream struct {
	s     *Scheduler
	ctx   context.Context //nolint:containedctx // that of the exchange: a turn is waited for until it ends
	n     int             // the bytes of its turn
	free  bool            // its turn is none
	start int64           // virtual: where its turn begins
	used  int64           // virtual: where its last turn ended
	began time.Time
	ready chan struct{} // it has got its turn
}

// Reset makes t the stream of a new body of s. Begin fails when ctx has ended.
func (t *Stream) Reset(s *Scheduler, ctx context.Context) { //nolint:revive // s is what the stream belongs to
	*t = Stream{s: s, ctx: ctx, ready: t.ready}
}

// Begin waits for the stream's turn, which is for n bytes. If it returns an error, which is that of the stream's
// context, there is none.
func (t *Stream) Begin(n int) error {
	s := t.s
	if s == nil {
		return nil
	}
	if t.free = t.used == 0 && n <= unturned; t.free {
		t.used = max(s.now.Load()-credit, 0) + cost(n, usual*time.Duration(n))
		return nil
	}
	now := s.now.Load()
	t.n, t.start = n, max(t.used, now-credit)
	t.began = time.Now()
	if s.waiting.Load() == 0 && s.bound.allows(t.began) && s.take() {
		s.advance(t.start)
		return nil
	}
	return t.wait()
}

// End ends the turn.
func (t *Stream) End() {
	s := t.s
	if s == nil || t.free {
		return
	}
	t.used = t.start + cost(t.n, time.Since(t.began))
	s.slots.Add(1)
	if s.waiting.Load() > 0 {
		s.mu.Lock()
		s.dispatch()
		s.mu.Unlock()
	}
}

// Pass takes a turn for n bytes on which nothing is left to be done.
func (t *Stream) Pass(n int) error {
	err := t.Begin(n)
	if err == nil {
		t.End()
	}
	return err
}

// cost returns what a turn for n bytes costs.
func cost(n int, took time.Duration) int64 {
	return min(int64(took), mostOfTurn+mostOfByte*int64(n)) + ofByte*int64(n)
}

// take takes a slot, if there is one.
func (s *Scheduler) take() bool {
	for {
		n := s.slots.Load()
		if n <= 0 {
			return false
		}
		if s.slots.CompareAndSwap(n, n-1) {
			return true
		}
	}
}

// advance moves the virtual time up to start, which is where a turn begins.
func (s *Scheduler) advance(start int64) {
	for {
		now := s.now.Load()
		if start <= now || s.now.CompareAndSwap(now, start) {
			return
		}
	}
}

// wait waits in the queue.
func (t *Stream) wait() error {
	s := t.s
	if t.ready == nil {
		t.ready = make(chan struct{}, 1)
	}
	s.mu.Lock()
	// Counted before a slot is looked for: a turn that ends meanwhile sees one of both.
	s.waiting.Add(1)
	s.queue = append(s.queue, t)
	s.dispatch()
	s.mu.Unlock()
	select {
	case <-t.ready:
	case <-t.ctx.Done():
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.leave(t) { // it has just got its turn
			<-t.ready
			s.slots.Add(1)
			s.dispatch()
		}
		return context.Cause(t.ctx)
	}
	t.began = time.Now()
	return nil
}

// leave removes t from the queue, and reports whether it was there. s.mu is held.
func (s *Scheduler) leave(t *Stream) bool {
	for i, other := range s.queue {
		if other == t {
			s.remove(i)
			return true
		}
	}
	return false
}

// remove removes s.queue[i]. s.mu is held.
func (s *Scheduler) remove(i int) {
	copy(s.queue[i:], s.queue[i+1:])
	s.queue[len(s.queue)-1] = nil
	s.queue = s.queue[:len(s.queue)-1]
	s.waiting.Add(-1)
}

// dispatch begins the turns that may begin. s.mu is held.
func (s *Scheduler) dispatch() {
	for len(s.queue) > 0 {
		if now := time.Now(); !s.bound.allows(now) {
			s.retry(s.bound.pause(now))
			return
		}
		if !s.take() {
			return
		}
		i := s.next()
		t := s.queue[i]
		s.remove(i)
		s.advance(t.start)
		t.ready <- struct{}{} // it has room for one
	}
}

// next returns whose turn it is. s.mu is held.
func (s *Scheduler) next() int {
	best := 0
	if s.grants++; s.grants%eldest == 0 {
		return best
	}
	for i, t := range s.queue {
		if t.due() < s.queue[best].due() {
			best = i
		}
	}
	return best
}

// due returns what decides between two streams that wait: where the turn is expected to end.
func (t *Stream) due() int64 { return t.start + usual*int64(t.n) }

// retry dispatches again after a time. s.mu is held.
func (s *Scheduler) retry(after time.Duration) {
	if s.timer != nil {
		s.timer.Reset(after)
		return
	}
	s.timer = time.AfterFunc(after, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.dispatch()
	})
}
