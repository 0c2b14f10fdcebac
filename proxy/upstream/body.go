package upstream

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// Body is a request's body that counts its bytes. Each attempt to send it reads
// through an attemptBody of its own: the transport of an attempt that failed may
// still wait for the next piece, which then belongs to the next attempt.
type Body struct {
	src     io.ReadCloser
	n       atomic.Int64          // bytes that an attempt took
	failed  atomic.Pointer[error] // why reading src failed; nil: it did not
	mu      sync.Mutex            // held while one attempt reads
	pending []byte                // what came for an attempt that was closed
	err     error                 // how src ended; sticky
	keeps   bool                  // kept is all that attempts took
	kept    []byte
	room    *atomic.Int64 // what all bodies of the client keep
	over    atomic.Bool   // nothing is to be kept any more
}

// maxKept bounds what is kept of a body, for a host that does not process it.
const maxKept = 64 << 10

// maxKeptOfAll bounds what is kept of all bodies of a client: a sandbox decides how many there are.
const maxKeptOfAll = 4 << 20

// keep keeps what attempts take, from the first byte on.
func (b *Body) keep(room *atomic.Int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.keeps, b.room = b.n.Load() == 0, room
}

// free frees what is kept. b.mu is held.
func (b *Body) free() {
	if len(b.kept) > 0 {
		b.room.Add(-int64(len(b.kept)))
	}
	b.kept, b.keeps = nil, false
}

// drop frees what is kept, at once or when the attempt that reads has read: the body is not sent again.
func (b *Body) drop() {
	if b == nil {
		return
	}
	b.over.Store(true)
	b.freeIfOver()
}

func (b *Body) freeIfOver() {
	if b.over.Load() && b.mu.TryLock() {
		b.free()
		b.mu.Unlock()
	}
}

// rewind makes the next attempt begin with the first byte, and reports whether it will. It cannot while one still
// reads.
func (b *Body) rewind() bool {
	if b == nil {
		return true
	}
	if !b.mu.TryLock() {
		return false
	}
	defer b.mu.Unlock()
	if !b.keeps {
		return b.n.Load() == 0
	}
	b.pending = append(b.kept, b.pending...)
	b.free()
	b.n.Store(0)
	return true
}

// took notes what an attempt took. b.mu is held.
func (b *Body) took(p []byte) {
	b.n.Add(int64(len(p)))
	if !b.keeps {
		return
	}
	if len(b.kept)+len(p) > maxKept || b.room.Add(int64(len(p))) > maxKeptOfAll {
		if len(b.kept)+len(p) <= maxKept { // it was added
			b.room.Add(-int64(len(p)))
		}
		b.free()
		return
	}
	b.kept = append(b.kept, p...)
}

// NewBody returns a body that reads src.
func NewBody(src io.ReadCloser) *Body { return &Body{src: src} }

// Read implements io.Reader. A client reads through attempts instead.
func (b *Body) Read(p []byte) (int, error) { return b.src.Read(p) }

// Close implements io.Closer.
func (b *Body) Close() error { return b.src.Close() }

// Ready reports whether a read of the body returns at once: it may be the source of another.
func (b *Body) Ready() bool { return b.ready() }

// Pause notes that the body is not read for a while, and not by its client's fault.
func (b *Body) Pause() {
	if src, ok := b.src.(interface{ Pause() }); ok {
		src.Pause()
	}
}

// ready reports whether a read of the body returns at once.
func (b *Body) ready() bool {
	if !b.mu.TryLock() {
		return false
	}
	defer b.mu.Unlock()
	if len(b.pending) > 0 || b.err != nil { // src may be read for what comes behind the body
		return true
	}
	src, ok := b.src.(interface{ Ready() bool })
	return ok && src.Ready()
}

// Sent returns how many bytes of the body were taken to be sent.
func (b *Body) Sent() int64 {
	if b == nil {
		return 0
	}
	return b.n.Load()
}

// Ended reports whether the body has been read to its end, or failed. A body that
// is being read has not.
func (b *Body) Ended() bool {
	if !b.mu.TryLock() {
		return false
	}
	defer b.mu.Unlock()
	return b.err != nil
}

// failure returns why the body could not be read; nil: it could.
func (b *Body) failure() error {
	if b == nil {
		return nil
	}
	if err := b.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// newAttempt returns the body for one attempt. Its reader must come back for more
// within timeout; otherwise stalled is called: the host does not take what was
// read.
func (b *Body) newAttempt(timeout time.Duration, stalled func()) *attemptBody {
	a := &attemptBody{body: b, timeout: timeout, stall: time.AfterFunc(timeout, stalled)}
	a.stall.Stop()
	return a
}

// attemptBody is the body for one attempt. Closing it ends the attempt's reading,
// and leaves the body open.
type attemptBody struct {
	body    *Body
	closed  atomic.Bool
	timeout time.Duration
	stall   *time.Timer // runs between two reads
}

// begin demands the first read within the attempt's timeout: a host that takes no
// head is noticed too.
func (a *attemptBody) begin() { a.stall.Reset(a.timeout) }

func (a *attemptBody) ready() bool { return a.body.ready() }

var errAttemptClosed = errors.New("read the request body: the attempt to send it is over")

// Read implements io.Reader.
func (a *attemptBody) Read(p []byte) (n int, err error) {
	a.stall.Stop()
	defer func() {
		if err == nil {
			a.stall.Reset(a.timeout)
		}
	}()
	return a.read(p)
}

func (a *attemptBody) read(p []byte) (int, error) {
	b := a.body
	b.mu.Lock()
	defer func() { b.mu.Unlock(); b.freeIfOver() }()
	switch {
	case a.closed.Load():
		return 0, errAttemptClosed
	case len(b.pending) > 0:
		n := copy(p, b.pending)
		if b.pending = b.pending[n:]; len(b.pending) == 0 {
			b.pending = nil
		}
		b.took(p[:n])
		return n, nil
	case b.err != nil:
		return 0, b.err
	}
	n, err := b.src.Read(p)
	if b.err = err; err != nil && err != io.EOF {
		b.failed.Store(&err)
	}
	if a.closed.Load() {
		b.pending = append(b.pending, p[:n]...)
		return 0, errAttemptClosed
	}
	b.took(p[:n])
	return n, err
}

// Close implements io.Closer.
func (a *attemptBody) Close() error {
	a.closed.Store(true)
	a.stall.Stop()
	return nil
}
