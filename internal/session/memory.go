package session

import (
	"context"
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/ALRubinger/aileron/proxy"
	"github.com/ALRubinger/aileron/proxy/budget"
)

// What a session's process needs beside its budget: the program and its caches,
// the connections that the budget does not count, and room for the collector.
const (
	ownMemory     = 28 << 20
	memoryPerConn = 64 << 10 // of those above usualConns
	usualConns    = 1024
)

// limitGarbage makes the collector run more often as the process nears what its
// limits allow it to hold: the budget bounds what is alive, and without this as
// much again could be garbage. A GOMEMLIMIT that is set is kept. It is called when
// the session has loaded its grants, before its first client. To find out what is
// alive takes a while where that is much: then the limit is one for all that was
// allocated, and settle is not nil, which lowers it.
func limitGarbage(l proxy.Limits) (settle func()) {
	if debug.SetMemoryLimit(-1) != math.MaxInt64 {
		return nil
	}
	settle = func() {
		debug.FreeOSMemory() // of the load; what is left is alive
		debug.SetMemoryLimit(memoryLimit(l) + grantsMemory(readHeap().live))
	}
	if used := readHeap().used; used > manyGrants {
		debug.SetMemoryLimit(memoryLimit(l) + grantsMemory(used))
		return settle
	}
	settle()
	return nil
}

// usualGrants is what a session with a few connectors holds when it starts, which
// ownMemory includes.
const usualGrants = 8 << 20

// manyGrants is a heap whose collection a start does not wait for.
const manyGrants = 4 * usualGrants

// grantsMemory returns what the grants of a session need beside ownMemory: 100 000
// operations are 160 MiB, and the collector would run all the time to keep a limit
// below that. It is twice what they take, as a reload makes new ones beside the old.
func grantsMemory(live uint64) int64 {
	if live <= usualGrants {
		return 0
	}
	return int64(2 * (live - usualGrants)) //nolint:gosec // it is less than the machine's memory
}

func memoryLimit(l proxy.Limits) int64 {
	size := l.Memory
	if size == 0 {
		size = budget.Default
	}
	return ownMemory + size + int64(max(l.Connections-usualConns, 0))*memoryPerConn
}

const (
	defaultPercent = 100      // GOGC's default
	leastHeap      = 4 << 20  // the runtime's own floor, at that default
	largestFloor   = 64 << 20 // more gains nothing
	collectorTick  = 250 * time.Millisecond
	restTick       = 5 * time.Second
	quietBytes     = 256 << 10 // what a session without requests allocates in a tick, and more
	settleTicks    = 12        // until the command of most sessions has begun
)

// collector sets a floor below which the heap is not collected. With the
// default GOGC alone, the few MiB that a session holds are collected anew for
// each few MiB that it allocates, many times a second. Above the floor, and near
// the memory limit, the runtime's own pace applies. The garbage of a session that
// has become idle is returned to the system. While there is little of it, the
// collector rests: GOGC need not be set anew before the next collection.
type collector struct {
	floor     uint64
	percent   int             // GOGC as it is set
	allocs    uint64          // bytes allocated until the last tick
	settle    func()          // see limitGarbage; nil: done
	collected <-chan struct{} // has a value after a collection; nil: never
	read      func() heap
}

// heap is the runtime's account of the heap, in bytes.
type heap struct {
	live   uint64 // at the end of the last collection
	roots  uint64 // stacks and globals, which the runtime's pace counts too
	used   uint64 // live, and what was allocated since, dead or not
	allocs uint64 // ever
}

// newCollector returns nil if the user has set GOGC, which is kept.
func newCollector() *collector {
	gogc := []metrics.Sample{{Name: "/gc/gogc:percent"}, {Name: "/gc/gomemlimit:bytes"}}
	metrics.Read(gogc)
	if gogc[0].Value.Uint64() != defaultPercent {
		return nil
	}
	// A heap that is always at the memory limit would have its pages returned to
	// the system and faulted in again: the floor stays away from it.
	return &collector{floor: min(largestFloor, gogc[1].Value.Uint64()/3*2), percent: defaultPercent, read: readHeap}
}

// run keeps the floor until ctx ends.
func (c *collector) run(ctx context.Context) {
	defer c.set(defaultPercent)
	timer := time.NewTimer(0)
	defer timer.Stop()
	woken := false
	for ticks := 0; ; ticks++ {
		now := c.read()
		switch {
		case c.settle != nil && ticks >= settleTicks:
			c.settle()
			c.settle, now = nil, c.read()
		case c.settle == nil && c.idle(now):
			debug.FreeOSMemory()
			now = c.read()
		}
		c.allocs = now.allocs
		c.set(c.percentFor(now))
		pause, collected := collectorTick, (<-chan struct{})(nil)
		if c.rests(now) && !woken { // many collections a second are not worth a look each
			pause, collected = restTick, c.collected
		}
		timer.Reset(pause)
		woken = false
		select {
		case <-timer.C:
		case <-collected:
			woken = true
		case <-ctx.Done():
			return
		}
	}
}

// collections returns a channel that has a value after a collection of garbage, until ctx ends.
func collections(ctx context.Context) <-chan struct{} {
	c := make(chan struct{}, 1)
	var await func()
	await = func() {
		runtime.AddCleanup(new([4]uintptr), func(c chan<- struct{}) { // the next collection frees it
			select {
			case c <- struct{}{}:
			default:
			}
			if ctx.Err() == nil {
				await()
			}
		}, c)
	}
	await()
	return c
}

// percentFor returns the GOGC with which the next collection begins when the heap
// has reached the floor, or its default where that is later.
func (c *collector) percentFor(h heap) int {
	most := float64(c.floor) / leastHeap // beyond it, the runtime's own floor is higher
	percent := 100 * min(most, (float64(c.floor)-float64(h.live))/float64(max(h.live+h.roots, 1)))
	return max(int(percent), defaultPercent)
}

// idle reports whether next to nothing was allocated since the last tick, and
// enough before that was not collected. As much must be allocated again before
// the next time, so that it costs a session with a request now and then little.
func (c *collector) idle(now heap) bool {
	return now.allocs-c.allocs < quietBytes && c.littered(now)
}

// rests reports whether nothing is to be done before the next collection, or
// before more garbage is left.
func (c *collector) rests(now heap) bool { return c.settle == nil && !c.littered(now) }

// littered reports whether enough is not collected to be worth a collection.
func (c *collector) littered(now heap) bool { return now.used > now.live+c.floor/4 }

// set sets GOGC, which stops all goroutines for a moment: small changes are not
// worth that.
func (c *collector) set(percent int) {
	if difference := percent - c.percent; percent != defaultPercent && max(difference, -difference) <= c.percent/8 {
		return
	}
	if percent != c.percent {
		debug.SetGCPercent(percent)
		c.percent = percent
	}
}

func readHeap() heap {
	s := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/gc/heap/allocs:bytes"},
	}
	metrics.Read(s)
	n := func(i int) uint64 { return s[i].Value.Uint64() }
	return heap{live: n(0), roots: n(1) + n(2), used: n(3), allocs: n(4)}
}
