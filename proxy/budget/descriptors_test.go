package budget

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestDescriptorsAreDividedBehindAReserve(t *testing.T) {
	for _, more := range []int{0, 64, 1024} {
		var d *Descriptors
		open := 0
		for settled := false; !settled; { // connections of earlier tests may just be closing
			open = openDescriptors()
			d = NewDescriptors(open + more)
			d.Start()
			settled = openDescriptors() == open+1 // the spare one
			d.Close()
		}
		if d.half < leastHalf || d.half > leastHalf && 2*d.half+d.Lobby()+descriptorReserve+open > d.limit+2 {
			t.Errorf("of %d descriptors, %d of them in use, each half has %d", d.limit, open, d.half)
		}
	}
	if limit := DescriptorLimit(); limit < 64 {
		t.Errorf("the process may have %d descriptors", limit)
	}
}

func TestAnUpstreamWaitsForADescriptor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewDescriptors(1000)
		d.Start()
		defer d.Close()
		d.half = 3
		idle := 1
		d.GiveUp = func() bool {
			if idle--; idle < 0 {
				return false
			}
			d.Release(1)
			return true
		}
		mustAcquire(t, d.Acquire(t.Context(), 3))
		mustAcquire(t, d.Acquire(t.Context(), 1)) // which an idle one is given up for
		time.AfterFunc(descriptorWait/2, func() { d.Release(1) })
		mustAcquire(t, d.Acquire(t.Context(), 1))
		if err := d.Acquire(t.Context(), 1); !errors.Is(err, ErrOutOfDescriptors) {
			t.Errorf("took one more with %v, want %v", err, ErrOutOfDescriptors)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := d.Acquire(ctx, 1); !errors.Is(err, context.Canceled) {
			t.Errorf("took one more with %v, want %v", err, context.Canceled)
		}
	})
}

func mustAcquire(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
