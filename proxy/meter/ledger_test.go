package meter_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/ALRubinger/aileron/proxy/meter"
)

// admit admits a request of a model and settles it with a number of tokens.
func admit(t *testing.T, l *meter.Ledger, tokens int64) {
	t.Helper()
	c, err := l.Admit([]string{"tokens"}, "")
	if err != nil {
		t.Fatal(err)
	}
	c.Settle(map[string]int64{meter.Requests: 1, "tokens": tokens})
	c.Settle(map[string]int64{meter.Requests: 1, "tokens": tokens}) // does nothing
}

// refused wants the error for a limit.
func refused(t *testing.T, l *meter.Ledger, want meter.Over, names ...string) {
	t.Helper()
	_, err := l.Admit(names, "")
	var over *meter.Over
	if !errors.As(err, &over) || *over != want {
		t.Errorf("Admit: %+v, want %+v", over, want)
	}
}

func TestTheNextRequestIsRefusedAtTheLimit(t *testing.T) {
	var notices []int
	l := meter.New(meter.Options{Limits: meter.Limits{"tokens": 100},
		Notice: func(n meter.Notice) { notices = append(notices, n.Percent) }})
	for _, n := range []int64{79, 1, 5, 50} {
		admit(t, l, n)
	}
	refused(t, l, meter.Over{Budget: meter.OfSession, Name: "tokens", Used: 135, Limit: 100}, "tokens")
	if _, err := l.Admit(nil, ""); err != nil {
		t.Errorf("a request of an operation without the meter: %v", err)
	}
	if !slices.Equal(notices, []int{80, 100}) {
		t.Errorf("noticed at %v, want once at 80 and once at 100", notices)
	}
}

func TestRequestsUnderWayCountAsTheLargestSoFar(t *testing.T) {
	l := meter.New(meter.Options{Limits: meter.Limits{"tokens": 100}})
	admit(t, l, 40)
	first, err := l.Admit([]string{"tokens"}, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Admit([]string{"tokens"}, ""); err != nil { // 40 + 40 < 100
		t.Fatal(err)
	}
	refused(t, l, meter.Over{Budget: meter.OfSession, Name: "tokens", Used: 40, Limit: 100, Wait: 1e9,
		UnderWay: true}, "tokens")
	first.Settle(nil) // it was not sent
	if _, err := l.Admit([]string{"tokens"}, ""); err != nil {
		t.Errorf("after one has ended: %v", err)
	}
}

// A limit that is lifted is twice as large, once for each time that it forbade a request; one that is exceeded stays.
func TestALimitIsLiftedForTheSession(t *testing.T) {
	l := meter.New(meter.Options{Limits: meter.Limits{"tokens": 10, meter.Requests: 100}})
	admit(t, l, 10)
	over := &meter.Over{Budget: meter.OfSession, Name: "tokens", Used: 10, Limit: 10}
	refused(t, l, *over, "tokens")
	c, err := l.Admit([]string{"tokens"}, "", over)
	if err != nil {
		t.Fatal(err)
	}
	c.Settle(map[string]int64{"tokens": 2})
	refused(t, l, meter.Over{Budget: meter.OfSession, Name: "tokens", Used: 12, Limit: 10}, "tokens")
	l.Lift(over, "", "first")
	l.Lift(over, "", "second") // of a request that waited for the same
	admit(t, l, 8)
	refused(t, l, meter.Over{Budget: meter.OfSession, Name: "tokens", Used: 20, Limit: 20}, "tokens")
}

// A decision that is taken back raises nothing, nor do those that were made where it led to.
func TestALimitIsLoweredWithItsDecision(t *testing.T) {
	l := meter.New(meter.Options{Limits: meter.Limits{"tokens": 10}})
	at := func(used, limit int64) *meter.Over {
		return &meter.Over{Budget: meter.OfSession, Name: "tokens", Used: used, Limit: limit}
	}
	admit(t, l, 10)
	l.Lift(at(10, 10), "", "first")
	admit(t, l, 10)
	l.Lift(at(20, 20), "", "second")
	l.Lower("other")
	admit(t, l, 5)
	l.Lower("first")
	refused(t, l, *at(25, 10), "tokens")
	l.Lift(at(25, 10), "", "third")
	admit(t, l, 5) // up to where the second one leads
	refused(t, l, *at(30, 30), "tokens")
	l.Lower("second")
	refused(t, l, *at(30, 20), "tokens")
}

func TestALimitOfRequestsHoldsForThoseUnderWay(t *testing.T) {
	l := meter.New(meter.Options{Limits: meter.Limits{meter.Requests: 2}})
	admit(t, l, 0)
	if _, err := l.Admit(nil, ""); err != nil {
		t.Fatal(err)
	}
	refused(t, l, meter.Over{Budget: meter.OfSession, Name: meter.Requests, Used: 1, Limit: 2, Wait: 1e9, UnderWay: true})
}

// The owner is told at 80 percent, and at the limit, once each.
func TestALimitIsTold(t *testing.T) {
	var told []meter.Notice
	l := meter.New(meter.Options{Limits: meter.Limits{"tokens": 100},
		Notice: func(n meter.Notice) { told = append(told, n) }})
	for range 11 {
		c, over := l.Admit([]string{"tokens"}, "")
		if over != nil {
			break
		}
		c.Settle(map[string]int64{"tokens": 10})
	}
	want := []meter.Notice{{Budget: meter.OfSession, Name: "tokens", Used: 80, Limit: 100, Percent: 80},
		{Budget: meter.OfSession, Name: "tokens", Used: 100, Limit: 100, Percent: 100}}
	if !slices.Equal(told, want) {
		t.Errorf("told: %+v, want %+v", told, want)
	}
}

// A sandbox that sends its requests all at once gets no more by that than a few beyond the limit: neither with a tiny
// request before them, nor with a small limit, nor with bytes, of which nothing is known at first.
func TestRequestsAtOnceDoNotEvadeALimit(t *testing.T) {
	for name, c := range map[string]struct {
		meter string
		limit int64
		first int64 // what one request used before; 0: there was none
		most  int
	}{
		"at first":            {"tokens", 2_000_000, 0, 16},
		"after a tiny one":    {"tokens", 2_000_000, 1, 16},
		"after a large one":   {"tokens", 2_000_000, 1_000_000, 1},
		"a small limit":       {"tokens", 10, 0, 10},
		"bytes":               {meter.Bytes, 1_000_000, 0, 16},
		"bytes after a few":   {meter.Bytes, 1_000_000, 10, 16},
		"one of a tiny meter": {"tokens", 1, 0, 1},
		"much input":          {"input_tokens", 100_000_000, 0, 50},
		"much output":         {meter.OutputTokens, 100_000_000, 0, 763},
	} {
		t.Run(name, func(t *testing.T) {
			l := meter.New(meter.Options{Limits: meter.Limits{c.meter: c.limit}})
			if c.first > 0 {
				charge, over := l.Admit([]string{"tokens"}, "")
				if over != nil {
					t.Fatal(over)
				}
				charge.Settle(map[string]int64{c.meter: c.first})
			}
			admitted := 0
			for range 1000 {
				var over *meter.Over
				if _, err := l.Admit([]string{"tokens", c.meter}, ""); err == nil {
					admitted++
				} else if !errors.As(err, &over) || !over.UnderWay || over.Name != c.meter {
					t.Fatalf("refused by %v, want by what is under way of %s", err, c.meter)
				}
			}
			if admitted == 0 || admitted > c.most {
				t.Errorf("%d of 1000 requests at once were admitted, want at most %d", admitted, c.most)
			}
		})
	}
}
