package proxy

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestAFullSessionWaitsForOneThatLeaves(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile func(*inflight, context.CancelFunc)
		want      admission
		after     time.Duration
	}{
		"one leaves":       {func(t *inflight, _ context.CancelFunc) { t.leave() }, entered, time.Second},
		"none leaves":      {func(*inflight, context.CancelFunc) {}, full, enterWait},
		"its client does":  {func(_ *inflight, gone context.CancelFunc) { gone() }, full, time.Second},
		"the session ends": {func(t *inflight, _ context.CancelFunc) { t.close() }, closed, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				under := &inflight{most: 1}
				if got := under.enter(t.Context()); got != entered {
					t.Fatalf("the first: %d, want entered", got)
				}
				ctx, gone := context.WithCancel(t.Context())
				defer gone()
				time.AfterFunc(time.Second, func() { c.meanwhile(under, gone) })
				started := time.Now()
				if got := under.enter(ctx); got != c.want || time.Since(started) != c.after {
					t.Errorf("enter = %d after %v, want %d after %v", got, time.Since(started), c.want, c.after)
				}
			})
		})
	}
}
