package fair

import (
	"testing"
	"time"
)

// within sets the session's bound. The clock of its process counts its turns, and other work besides.
func (s *session) within(cpus, other float64) {
	began := time.Now()
	s.bound = newBound(cpus, func() time.Duration {
		return s.used() + time.Duration(float64(time.Since(began))*other)
	})
}

func TestTurnsKeepToTheBound(t *testing.T) {
	for name, at := range map[string]struct{ cpus, other, want float64 }{
		"half a processor":             {0.5, 0, 0.5},
		"less than the least":          {0.1, 0, Least},
		"more than one turn needs":     {4, 0, 1},
		"what else the process does":   {0.8, 0.3, 0.5},
		"others use all that there is": {0.5, 0.9, 0.1}, // one turn in ten milliseconds
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, s *session) {
				s.within(at.cpus, at.other)
				s.bodies(8, "large", time.Millisecond)
				compute(time.Second) // what was saved is used up
				before := s.used()
				compute(10 * time.Second)
				if got := (s.used() - before).Seconds() / 10; got < at.want*0.85 || got > at.want*1.1 {
					t.Errorf("the turns used %.2f processors, want %.2f", got, at.want)
				}
			})
		})
	}
}

// A small body waits for no more than the turn before it and for what that owes.
func TestWhatIsSmallGoesFirstAtTheBoundToo(t *testing.T) {
	run(t, func(t *testing.T, s *session) {
		s.within(0.5, 0)
		s.bodies(32, "large", time.Millisecond)
		compute(time.Second)
		for range 20 {
			compute(33 * time.Millisecond)
			began := time.Now()
			s.body("small", 1, time.Millisecond/4)
			if waited := time.Since(began); waited > 8*time.Millisecond {
				t.Errorf("a small body waited for %v", waited)
			}
		}
	})
}

func TestTheProcessHasAClock(t *testing.T) {
	before := processTime()
	for began := time.Now(); processTime() == before; {
		if time.Since(began) > 10*time.Second {
			t.Fatal("the process used no processor time in ten seconds")
		}
	}
}
