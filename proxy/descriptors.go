package proxy

import (
	"context"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/ALRubinger/aileron/proxy/upstream"
)

// descriptors divides the file descriptors of the process. A reserve comes
// first, for what must work however many connections there are: the audit log,
// the connector store, the vault, the control socket, and the connections that
// are only denied. Of the rest, clients have one half and upstreams the other.
type descriptors struct {
	limit  int         // of the process
	giveUp func() bool // closes an idle upstream connection, and reports whether there was one to close at once
	begin  sync.Once

	mu        sync.Mutex
	half      int
	clients   int
	upstreams int
	room      chan struct{} // closed when an upstream's descriptor is free; nil: no connection waits
	spare     *os.File      // see squeeze; nil: it is in use
	open      func() (*os.File, error)
}

const (
	descriptorReserve = 20
	leastHalf         = 4
)

func newDescriptors(limit int) *descriptors {
	return &descriptors{limit: limit, open: func() (*os.File, error) { return os.Open(os.DevNull) }}
}

// descriptorLimit returns how many descriptors the process may have. The Go
// runtime has raised it to the hard limit.
func descriptorLimit() int {
	const most = 1 << 20
	var l syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l) != nil {
		return most
	}
	return int(min(l.Cur, most))
}

// lobbySize returns how many connections may be denied at a time.
func (d *descriptors) lobbySize() int { return min(max(d.limit/10, 4), 64) }

// start counts what the process has open before its first connection.
func (d *descriptors) start() {
	d.begin.Do(func() {
		taken := openDescriptors()
		d.mu.Lock()
		defer d.mu.Unlock()
		d.spare, _ = d.open()
		d.half = max(leastHalf, (d.limit-taken-descriptorReserve-d.lobbySize())/2)
	})
}

// openDescriptors returns how many descriptors the process has.
func openDescriptors() int {
	const unknown = 32
	for _, dir := range []string{"/proc/self/fd", "/dev/fd"} {
		if entries, err := os.ReadDir(dir); err == nil {
			return len(entries)
		}
	}
	return unknown
}

// takeClient counts a client's connection, and reports whether it may be served.
func (d *descriptors) takeClient() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.clients >= d.half || !d.restore() {
		return false
	}
	d.clients++
	return true
}

func (d *descriptors) giveClient() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.clients--
	d.restore()
}

// Acquire counts n descriptors of a connection to an upstream. Idle ones
// are closed for it; where there are none, it waits for others to end, but
// not for long.
func (d *descriptors) Acquire(ctx context.Context, n int) error {
	d.start()
	late := time.NewTimer(enterWait)
	defer late.Stop()
	again := time.NewTicker(enterWait / 20) // for one that is idle by then
	defer again.Stop()
	for {
		room := d.tryUpstream(n)
		if room == nil {
			return nil
		}
		if d.giveUp != nil && d.giveUp() {
			continue
		}
		select {
		case <-room:
		case <-again.C:
		case <-late.C:
			return upstream.ErrOutOfDescriptors
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// tryUpstream counts n descriptors in and returns nil, or returns what is
// closed as soon as another try is worth it.
func (d *descriptors) tryUpstream(n int) (room <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.upstreams+n <= d.half {
		d.upstreams += n
		return nil
	}
	if d.room == nil {
		d.room = make(chan struct{})
	}
	return d.room
}

// Release counts n descriptors of an upstream connection out.
func (d *descriptors) Release(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.upstreams -= n
	if d.room != nil {
		close(d.room)
		d.room = nil
	}
	d.restore()
}

// squeeze makes room for a connection that could not be accepted: other parts of
// the process have used up the reserve. The connection then gets the spare
// descriptor, and is denied. squeeze reports whether accepting again is worth it.
func (d *descriptors) squeeze() bool {
	d.start()
	if d.giveUp != nil && d.giveUp() {
		return true
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.spare == nil {
		return false
	}
	_ = d.spare.Close()
	d.spare = nil
	return true
}

// restore takes the spare descriptor back, and reports whether it is there.
// d.mu is held.
func (d *descriptors) restore() bool {
	if d.spare == nil {
		d.spare, _ = d.open()
	}
	return d.spare != nil
}

// close closes the spare descriptor.
func (d *descriptors) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.spare != nil {
		_ = d.spare.Close()
	}
}
