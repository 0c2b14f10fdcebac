package wire

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// What reading a request body gives besides io errors.
var (
	ErrBodyTooLarge = errors.New("read the request body: it is too large")
	ErrBodyStalled  = errors.New("read the request body: it comes too slowly")
)

// lengthReader reads a body of a known length.
type lengthReader struct {
	src  *source
	left int64
}

func (r *lengthReader) Read(p []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	if int64(len(p)) > r.left {
		p = p[:r.left]
	}
	n, err := r.src.Read(p)
	r.left -= int64(n)
	if r.left == 0 {
		return n, io.EOF
	}
	return n, unexpected(err)
}

// requestBody lends the connection's inbound half to whoever sends the body
// upstream. net/http's Transport may still be reading when its response is
// long here, so the loan ends with release, not with Close.
type requestBody struct {
	from  io.Reader
	conn  net.Conn
	limit int64
	ready func() error // says 100 Continue before the first read; nil: nobody waits
	ended func()       // called once, when the whole body was read

	mu       sync.Mutex
	read     int64
	err      error // sticky
	detached bool

	state sync.Mutex // guards detached's early peek, see release
}

func (b *requestBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return 0, b.err
	}
	if b.gone() {
		return 0, errDetached
	}
	if b.ready != nil {
		ready := b.ready
		b.ready = nil
		if b.err = ready(); b.err != nil {
			return 0, b.err
		}
	}
	n, err := b.from.Read(p)
	b.read += int64(n)
	if b.limit > 0 && b.read > b.limit {
		err = ErrBodyTooLarge
	}
	if b.err = err; err == io.EOF {
		b.ended()
	}
	return n, err
}

// Close leaves the rest of the body unread; release deals with it.
func (b *requestBody) Close() error { return nil }

func (b *requestBody) gone() bool {
	b.state.Lock()
	defer b.state.Unlock()
	return b.detached
}

// release takes the connection back. It ends a read that is under way,
// throws away up to most bytes that were not read, and reports whether the
// connection stands at the next request's first byte.
func (b *requestBody) release(most int64) bool {
	b.state.Lock()
	b.detached = true
	b.state.Unlock()
	if !b.mu.TryLock() {
		_ = b.conn.SetReadDeadline(aLongTimeAgo)
		b.mu.Lock()
		_ = b.conn.SetReadDeadline(time.Time{})
	}
	defer b.mu.Unlock()
	if b.err != nil {
		return b.err == io.EOF
	}
	if b.ready != nil {
		return false // the client waits for a 100 that never comes
	}
	_ = b.conn.SetReadDeadline(time.Now().Add(time.Second))
	defer func() { _ = b.conn.SetReadDeadline(time.Time{}) }()
	_, err := io.CopyN(io.Discard, b.from, most)
	b.err = errDetached
	return err == io.EOF
}
