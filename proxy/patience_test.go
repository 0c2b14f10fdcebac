package proxy

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// One patience serves one wait after another, whether the wait before it ended in
// time or not.
func TestEachWaitEndsAfterItsOwnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p patience
		for i, late := range []bool{false, true, true, false, false, true} {
			ctx := p.begin(time.Minute)
			began := time.Now()
			if ctx.Err() != nil {
				t.Fatalf("wait %d is over before it begins", i)
			}
			if !late {
				if i%3 == 0 { // some waits have nothing to wait for
					_ = ctx.Done()
				}
				p.end()
				continue
			}
			_ = ctx.Done()
			<-ctx.Done()
			if took := time.Since(began); took != time.Minute || !errors.Is(ctx.Err(), context.DeadlineExceeded) {
				t.Errorf("wait %d ends after %v with %v", i, took, ctx.Err())
			}
			p.end()
		}
	})
}

func TestAWaitForNothingCostsNothing(t *testing.T) {
	var p patience
	if n := testing.AllocsPerRun(100, func() {
		ctx := p.begin(time.Minute)
		defer p.end()
		_ = ctx.Err()
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
