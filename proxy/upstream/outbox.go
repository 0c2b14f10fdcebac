package upstream

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// outbox is what waits to be written on a connection that several exchanges share.
// net/http flushes the head of each request by itself. While others are under way,
// a small piece waits for the goroutines that can run, which may add more, and all
// of it is one write. A lone exchange never waits.
type outbox struct {
	write     func([]byte) (int, error)
	exchanges atomic.Int32 // under way on the connection

	mu      sync.Mutex
	changed sync.Cond // buf was taken, or sending ended
	buf     *[]byte   // nil: nothing waits
	sending bool      // a goroutine writes what waits, and ends when there is no more
	err     error     // of write; sticky
}

// outboxPiece is the largest piece that waits. DATA frames of a large body are
// written as they come.
const outboxPiece = 2 << 10

func newOutbox(write func([]byte) (int, error)) *outbox {
	o := &outbox{write: write}
	o.changed.L = &o.mu
	return o
}

// put takes p, and reports whether it did. Otherwise the caller writes it: nothing
// that came before waits any more. Calls do not overlap.
func (o *outbox) put(p []byte) (bool, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	small := len(p) <= outboxPiece
	for o.sending && o.err == nil && (!small || o.buf != nil && len(*o.buf)+len(p) > pieceSize) {
		o.changed.Wait()
	}
	if o.err != nil || !small || !o.sending && o.exchanges.Load() < 2 {
		return false, o.err
	}
	if o.buf == nil {
		o.buf = writeBuffers.Get().(*[]byte)
		*o.buf = (*o.buf)[:0]
	}
	*o.buf = append(*o.buf, p...)
	if !o.sending {
		o.sending = true
		go o.send()
	}
	return true, nil
}

// send writes what waits until nothing does.
func (o *outbox) send() {
	runtime.Gosched()
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.buf != nil && o.err == nil {
		buf := o.buf
		o.buf = nil
		o.changed.Broadcast()
		o.mu.Unlock()
		_, err := o.write(*buf)
		*buf = (*buf)[:cap(*buf)]
		writeBuffers.Put(buf)
		o.mu.Lock()
		o.err = err
	}
	o.sending = false
	o.changed.Broadcast()
}
