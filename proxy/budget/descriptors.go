package budget

import (
	"context"
	"errors"
	"os"
	"sync"
	"syscall"
	"time"
)

// Descriptors divides the file descriptors of the process. A reserve comes
// first, for what must work however many connections there are: the audit log,
// the connector store, the vault, the control socket, and the connections that
// are only denied. Of the rest, clients have one half and upstreams the other.
type Descriptors struct {
	limit  int         // of the process
	GiveUp func() bool // closes an idle upstream connection, and reports whether there was one to close at once
	// Open opens the spare descriptor. Tests replace it.
	Open  func() (*os.File, error)
	begin sync.Once

	mu        sync.Mutex
	half      int
	clients   int
	upstreams int
	room      chan struct{} // closed when an upstream's descriptor is free; nil: no connection waits
	spare     *os.File      // see Squeeze; nil: it is in use
}

const (
	descriptorReserve = 20
	leastHalf         = 4

	// descriptorWait is how long a connection to an upstream waits for others to end.
	descriptorWait = 2 * time.Second
)

// ErrOutOfDescriptors is returned by [Descriptors.Acquire] when none is left.
var ErrOutOfDescriptors = errors.New("dial upstream: the process has no file descriptor left")

func NewDescriptors(limit int) *Descriptors {
	return &Descriptors{limit: limit, Open: func() (*os.File, error) { return os.Open(os.DevNull) }}
}

// DescriptorLimit returns how many descriptors the process may have. The Go
// runtime has raised it to the hard limit.
func DescriptorLimit() int {
	const most = 1 << 20
	var l syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l) != nil {
		return most
	}
	return int(min(l.Cur, most))
}

// Lobby returns how many connections may be denied at a time.
func (d *Descriptors) Lobby() int { return min(max(d.limit/10, 4), 64) }

// Start counts what the process has open before its first connection.
func (d *Descriptors) Start() {
	d.begin.Do(func() {
		taken := openDescriptors()
		d.mu.Lock()
		defer d.mu.Unlock()
		d.spare, _ = d.Open()
		d.half = max(leastHalf, (d.limit-taken-descriptorReserve-d.Lobby())/2)
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

// TakeClient counts a client's connection, and reports whether it may be served.
func (d *Descriptors) TakeClient() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.clients >= d.half || !d.restore() {
		return false
	}
	d.clients++
	return true
}

func (d *Descriptors) GiveClient() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.clients--
	d.restore()
}

// Acquire counts n descriptors of a connection to an upstream. Idle ones
// are closed for it; where there are none, it waits for others to end, but
// not for long.
func (d *Descriptors) Acquire(ctx context.Context, n int) error {
	d.Start()
	late := time.NewTimer(descriptorWait)
	defer late.Stop()
	again := time.NewTicker(descriptorWait / 20) // for one that is idle by then
	defer again.Stop()
	for {
		room := d.tryUpstream(n)
		if room == nil {
			return nil
		}
		if d.GiveUp != nil && d.GiveUp() {
			continue
		}
		select {
		case <-room:
		case <-again.C:
		case <-late.C:
			return ErrOutOfDescriptors
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// tryUpstream counts n descriptors in and returns nil, or returns what is
// closed as soon as another try is worth it.
func (d *Descriptors) tryUpstream(n int) (room <-chan struct{}) {
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
func (d *Descriptors) Release(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.upstreams -= n
	if d.room != nil {
		close(d.room)
		d.room = nil
	}
	d.restore()
}

// Squeeze makes room for a connection that could not be accepted: other parts of
// the process have used up the reserve. The connection then gets the spare
// descriptor, and is denied. Squeeze reports whether accepting again is worth it.
func (d *Descriptors) Squeeze() bool {
	d.Start()
	if d.GiveUp != nil && d.GiveUp() {
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
func (d *Descriptors) restore() bool {
	if d.spare == nil {
		d.spare, _ = d.Open()
	}
	return d.spare != nil
}

// Close closes the spare descriptor.
func (d *Descriptors) Close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.spare != nil {
		_ = d.spare.Close()
	}
}
