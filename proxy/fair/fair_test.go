package fair

import (
	"context"
	"errors"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const piece = 16 << 10

// compute takes time, as the search of a piece does.
func compute(d time.Duration) { <-time.After(d) }

// session is a scheduler whose turns are noted by the names of their streams.
type session struct {
	*Scheduler
	t *testing.T

	mu    sync.Mutex
	taken []string
	spent time.Duration // by its turns

	ctx  context.Context // ends what is under way
	stop func()
	all  sync.WaitGroup
}

// run runs test in a bubble, with a session that has one turn at a time.
func run(t *testing.T, test func(t *testing.T, s *session)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &session{Scheduler: newScheduler(1), t: t}
		s.ctx, s.stop = context.WithCancel(t.Context())
		defer s.all.Wait()
		defer s.stop()
		test(t, s)
	})
}

// bodies starts n bodies.
func (s *session) bodies(n int, name string, each time.Duration) {
	for range n {
		s.all.Go(func() { s.body(name, math.MaxInt, each) })
	}
}

// body takes up to n turns of a stream, each as long as a search of a piece that takes so long.
func (s *session) body(name string, n int, each time.Duration) {
	var t Stream
	t.Reset(s.Scheduler, s.ctx)
	for ; n > 0 && s.ctx.Err() == nil && t.Begin(piece) == nil; n-- {
		s.note(name, 0)
		compute(each)
		s.note("", each)
		t.End()
	}
}

// note notes a turn that begins, or what one has used.
func (s *session) note(name string, used time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spent += used; name != "" {
		s.taken = append(s.taken, name)
	}
}

// turns returns the names of the streams whose turns began, and forgets them.
func (s *session) turns() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := s.taken
	s.taken = nil
	return taken
}

// used returns what all turns have used.
func (s *session) used() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.spent
}

// count returns how many of the turns a body had.
func count(turns []string, name string) (n int) {
	for _, turn := range turns {
		if turn == name {
			n++
		}
	}
	return n
}

// occupy takes the only turn until it is released.
func (s *session) occupy() (release func()) {
	var t Stream
	t.Reset(s.Scheduler, s.t.Context())
	if err := t.Begin(piece); err != nil {
		s.t.Fatal(err)
	}
	return t.End
}

func TestWhatIsSmallGoesBeforeWhatIsLarge(t *testing.T) {
	run(t, func(t *testing.T, s *session) {
		s.bodies(32, "large", time.Millisecond)
		compute(200 * time.Millisecond) // all of them have used what a new body has in advance
		s.turns()
		s.body("small", 3, time.Millisecond/2)
		if turns := s.turns(); len(turns) > 3+3 {
			t.Errorf("a body of three pieces took part in %d turns: %v", len(turns), turns)
		}
	})
}

func TestAStreamOfEventsGoesBeforeWhatIsLarge(t *testing.T) {
	run(t, func(t *testing.T, s *session) {
		s.bodies(32, "large", time.Millisecond)
		var events Stream
		events.Reset(s.Scheduler, t.Context())
		if err := events.Pass(200); err != nil { // the first takes no turn
			t.Fatal(err)
		}
		for range 50 {
			compute(20 * time.Millisecond)
			began := time.Now()
			if err := events.Begin(200); err != nil {
				t.Fatal(err)
			}
			if late := time.Since(began); late > 3*time.Millisecond {
				t.Errorf("an event waited for %v, which is more than two turns", late)
			}
			compute(50 * time.Microsecond)
			events.End()
		}
	})
}

func TestLargeBodiesShareEqually(t *testing.T) {
	run(t, func(t *testing.T, s *session) {
		names := []string{"a", "b", "c", "d"}
		for _, name := range names {
			s.bodies(1, name, time.Millisecond)
		}
		compute(200 * time.Millisecond)
		turns := s.turns()
		for _, name := range names {
			if n := count(turns, name); n < 40 || n > 60 {
				t.Errorf("%s had %d of %d turns", name, n, len(turns))
			}
		}
	})
}

// A body that is slow to search has fewer turns than one that is fast.
func TestTimeIsSharedAndNotBytes(t *testing.T) {
	run(t, func(t *testing.T, s *session) {
		s.bodies(4, "slow", 4*time.Millisecond)
		s.bodies(4, "fast", time.Millisecond/4)
		compute(time.Second)
		// One turn in eight is that of the other one, whatever it used.
		turns := s.turns()
		if fast, slow := count(turns, "fast"), count(turns, "slow"); fast < 5*slow {
			t.Errorf("the fast body had %d turns and the slow one %d", fast, slow)
		}
	})
}

// Bodies that are small, without end, leave a turn in eight to the one that has waited for longest.
func TestWhatIsLargeIsNotStarved(t *testing.T) {
	run(t, func(t *testing.T, s *session) {
		s.bodies(1, "large", time.Millisecond)
		compute(50 * time.Millisecond)
		for range 4 {
			s.all.Go(func() {
				for s.ctx.Err() == nil {
					s.body("small", 1, time.Millisecond)
				}
			})
		}
		s.turns()
		compute(300 * time.Millisecond)
		turns := s.turns()
		if n := count(turns, "large"); n < 20 {
			t.Errorf("the large body had %d of %d turns", n, len(turns))
		}
	})
}

func TestAWaitEndsWithItsContext(t *testing.T) {
	run(t, func(t *testing.T, s *session) {
		release := s.occupy()
		gone := errors.New("the client is gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		ended := make(chan error)
		go func() {
			var w Stream
			w.Reset(s.Scheduler, ctx)
			ended <- w.Begin(piece)
		}()
		synctest.Wait()
		cancel(gone)
		if err := <-ended; !errors.Is(err, gone) {
			t.Errorf("Begin returned %v, want %v", err, gone)
		}
		release()
		if s.slots.Load() != 1 || s.waiting.Load() != 0 || len(s.queue) != 0 {
			t.Errorf("%d turns are left, %d streams wait, want 1 and 0", s.slots.Load(), s.waiting.Load())
		}
		s.occupy()()
	})
}

// A stream that gives up in the moment in which it gets its turn leaves it to the next one.
func TestATurnThatComesTooLateIsPassedOn(t *testing.T) {
	for range 200 {
		s := &session{Scheduler: newScheduler(1), t: t}
		release := s.occupy()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			var w Stream
			if w.Reset(s.Scheduler, ctx); w.Begin(piece) == nil {
				w.End()
			}
		}()
		for s.waiting.Load() == 0 {
		}
		go cancel()
		release()
		<-ended
		s.occupy()()
	}
}

// The response of an API is one small piece: it takes no turn. What follows it does.
func TestASmallFirstPieceTakesNoTurn(t *testing.T) {
	run(t, func(t *testing.T, s *session) {
		release := s.occupy()
		var w Stream
		for range 2 {
			w.Reset(s.Scheduler, t.Context())
			if err := w.Pass(unturned); err != nil {
				t.Fatal(err)
			}
		}
		ended := make(chan error)
		go func() { ended <- w.Pass(1) }()
		synctest.Wait()
		if s.waiting.Load() != 1 {
			t.Error("its second piece waits for nothing")
		}
		release()
		if err := <-ended; err != nil || s.slots.Load() != 1 {
			t.Errorf("%v, %d turns are left", err, s.slots.Load())
		}
		release = s.occupy()
		defer release()
		w.Reset(s.Scheduler, s.ctx)
		go func() { ended <- w.Pass(unturned + 1) }()
		synctest.Wait()
		if s.waiting.Load() != 1 {
			t.Error("a large first piece waits for nothing")
		}
		s.stop()
		<-ended
	})
}

func TestWithoutASchedulerNothingWaits(t *testing.T) {
	var a, b Stream
	a.Reset(nil, t.Context())
	if a.Begin(1) != nil || b.Begin(1) != nil {
		t.Error("Begin failed")
	}
	a.End()
	b.End()
}

func TestOneProcessorIsLeft(t *testing.T) {
	for _, at := range []struct {
		cpus  float64
		procs int
		want  int64
	}{{0, 1, 1}, {0, 2, 1}, {0, 8, 7}, {1.5, 8, 2}, {0.2, 8, 1}, {16, 4, 3}} {
		if got := turnsAtOnce(at.cpus, at.procs); got != at.want {
			t.Errorf("with %v of %d processors there are %d turns at once, want %d", at.cpus, at.procs, got, at.want)
		}
	}
}

// A body that waits for nothing pays nothing: no lock, and no memory.
func TestATurnAllocatesNothing(t *testing.T) {
	s := New(1)
	var w Stream
	w.Reset(s, t.Context())
	if n := testing.AllocsPerRun(100, func() {
		if w.Begin(piece) == nil {
			w.End()
		}
	}); n != 0 {
		t.Errorf("a turn allocates %v times", n)
	}
}

func BenchmarkTurn(b *testing.B) {
	for name, s := range map[string]*Scheduler{"free": New(0), "bound": New(64)} {
		b.Run(name, func(b *testing.B) {
			var t Stream
			t.Reset(s, b.Context())
			for b.Loop() {
				_ = t.Begin(1)
				t.End()
			}
		})
	}
}
