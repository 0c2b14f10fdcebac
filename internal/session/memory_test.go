package session

import (
	"context"
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ALRubinger/aileron/proxy"
)

const mib = 1 << 20

func TestTheHeapIsNotCollectedBelowTheFloor(t *testing.T) {
	c := &collector{floor: 32 * mib}
	for _, test := range []struct {
		name string
		h    heap
		want int
	}{
		{"nothing is alive: the runtime's own floor is raised to ours", heap{}, 800},
		{"a small heap grows to the floor", heap{live: 5 * mib}, 540},
		{"stacks count", heap{live: 5 * mib, roots: 5 * mib}, 270},
		{"half the floor: GOGC's default reaches it", heap{live: 16 * mib}, 100},
		{"more than the floor", heap{live: 40 * mib}, 100},
	} {
		if got := c.percentFor(test.h); got != test.want {
			t.Errorf("%s: GOGC is %d, want %d", test.name, got, test.want)
		}
	}
}

func TestGarbageOfAnIdleSessionIsReturned(t *testing.T) {
	c := &collector{floor: 32 * mib, allocs: 1000 * mib}
	for _, test := range []struct {
		name string
		h    heap
		want bool
	}{
		{"garbage, and next to no allocation", heap{live: 5 * mib, used: 14 * mib, allocs: 1000*mib + 1<<10}, true},
		{"requests come", heap{live: 5 * mib, used: 14 * mib, allocs: 1001 * mib}, false},
		{"little garbage", heap{live: 5 * mib, used: 12 * mib, allocs: 1000 * mib}, false},
	} {
		if got := c.idle(test.h); got != test.want {
			t.Errorf("%s: idle is %t, want %t", test.name, got, test.want)
		}
	}
}

func TestTheCollectorIsSetAndRestored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go newCollector().run(ctx)
		synctest.Wait()
		if got := gogc(); got <= defaultPercent {
			t.Errorf("GOGC is %d while the heap is below its floor, want more", got)
		}
		if newCollector() != nil {
			t.Error("a GOGC that is set already is not kept")
		}
		cancel()
		synctest.Wait()
		if got := gogc(); got != defaultPercent {
			t.Errorf("GOGC is %d after the session, want the default", got)
		}
	})
}

// While nothing is done, a look in five seconds is enough. One follows a collection at once, but not each of many.
func TestTheCollectorRestsWhileNothingIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		collected, looks := make(chan struct{}), atomic.Int32{}
		var littered atomic.Bool
		c := newCollector()
		c.collected = collected
		c.read = func() heap {
			now := heap{live: 5 * mib, used: 6 * mib, allocs: uint64(looks.Add(1)) * mib}
			if littered.Load() {
				now.used += c.floor
			}
			return now
		}
		go c.run(ctx)
		before := int32(0)
		after := func(what string, want int32) {
			t.Helper()
			synctest.Wait()
			now := looks.Load()
			if got := now - before; got != want {
				t.Errorf("%s: %d looks, want %d", what, got, want)
			}
			before = now
		}
		collect := func() {
			select {
			case collected <- struct{}{}:
			case <-time.After(time.Hour):
				t.Fatal("a collection does not end the rest")
			}
		}
		after("at the start", 1)
		<-time.After(time.Minute + time.Millisecond) // of the bubble
		after("in a minute of rest", 12)
		collect()
		after("after a collection", 1)
		select {
		case collected <- struct{}{}:
			t.Error("the next collection is looked at a moment later")
		case <-time.After(collectorTick - time.Millisecond):
		}
		<-time.After(time.Millisecond)
		after("a tick later", 1)
		littered.Store(true)
		collect()
		after("after a collection", 1)
		<-time.After(10*collectorTick + time.Millisecond)
		after("in ten ticks with garbage while more is allocated", 10)
	})
}

func TestACollectionIsReported(t *testing.T) {
	c := collections(t.Context())
	for range 2 {
		runtime.GC()
		<-c // or the test hangs
	}
}

func TestAMemoryLimitThatIsSetIsKept(t *testing.T) {
	before := debug.SetMemoryLimit(300 * mib)
	defer debug.SetMemoryLimit(before)
	limitGarbage(proxy.Limits{})
	if got := debug.SetMemoryLimit(-1); got != 300*mib {
		t.Errorf("the memory limit is %d MiB, want the 300 MiB that were set", got/mib)
	}
	if got := newCollector().floor; got != largestFloor {
		t.Errorf("the floor is %d MiB, want %d", got/mib, largestFloor/mib)
	}
	debug.SetMemoryLimit(math.MaxInt64)
	limitGarbage(proxy.Limits{})
	limit := uint64(debug.SetMemoryLimit(-1))
	if got := newCollector().floor; got != min(limit/3*2, largestFloor) || got < 32*mib {
		t.Errorf("the floor is %d MiB with a limit of %d MiB, want two thirds of it", got/mib, limit/mib)
	}
}

// A limit below what is alive would have the collector run all the time.
func TestLargeGrantsRaiseTheMemoryLimit(t *testing.T) {
	before := debug.SetMemoryLimit(math.MaxInt64)
	defer debug.SetMemoryLimit(before)
	grants := make([]byte, 160*mib)
	limitGarbage(proxy.Limits{})
	if got := debug.SetMemoryLimit(-1); got < memoryLimit(proxy.Limits{})+2*150*mib {
		t.Errorf("the memory limit is %d MiB with grants of 160 MiB", got/mib)
	}
	runtime.KeepAlive(grants)
	if got := grantsMemory(5 * mib); got != 0 {
		t.Errorf("grants of usual size raise the memory limit by %d", got)
	}
}

func gogc() uint64 {
	s := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// What is alive of a large heap is found out when the session has begun: its command does not wait for it.
func TestTheMemoryLimitOfLargeGrantsIsSettledLater(t *testing.T) {
	before := debug.SetMemoryLimit(math.MaxInt64)
	defer debug.SetMemoryLimit(before)
	runtime.GC()
	garbage, grants := make([]byte, 100*mib), make([]byte, 60*mib)
	runtime.KeepAlive(garbage)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		settle, settled := limitGarbage(proxy.Limits{}), atomic.Int32{}
		if settle == nil {
			t.Fatal("a heap of 160 MiB was collected first")
		}
		first := debug.SetMemoryLimit(-1)
		if least := memoryLimit(proxy.Limits{}) + 2*150*mib; first < least {
			t.Errorf("until then the limit is %d MiB, want %d or more", first/mib, least/mib)
		}
		c := newCollector()
		c.settle = func() { settle(); settled.Add(1) }
		go c.run(ctx)
		<-time.After((settleTicks - 1) * collectorTick) // of the bubble
		synctest.Wait()
		if settled.Load() != 0 {
			t.Error("it is settled while the command may not have begun")
		}
		<-time.After(settleTicks * collectorTick)
		synctest.Wait()
		if now := debug.SetMemoryLimit(-1); settled.Load() != 1 || now > first-100*mib {
			t.Errorf("settled %d times: the limit is %d MiB, and was %d", settled.Load(), now/mib, first/mib)
		}
	})
	runtime.KeepAlive(grants)
}
