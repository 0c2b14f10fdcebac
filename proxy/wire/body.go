package wire

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/ALRubinger/aileron/proxy/budget"
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
	pace  pace
	ready func() error // says 100 Continue before the first read; nil: nobody waits
	ended func()       // called once, when the whole body was read
	hold  *budget.Hold
	took  int64 // what hold has for the upload

	mu       sync.Mutex
	read     int64
	err      error // sticky
	detached bool

	// state guards detached, ready and unasked, and is not held over a read.
	state   sync.Mutex
	unasked bool // the answer came before the body was asked for
}

// ask lets a client that waits for 100 Continue begin, unless nobody is to
// read its body any more. The 100 is written under state, so that it never
// comes after, or inside, the head of the answer.
func (b *requestBody) ask() error {
	b.state.Lock()
	defer b.state.Unlock()
	if b.detached || b.unasked {
		return errDetached
	}
	if b.ready == nil {
		return nil
	}
	ready := b.ready
	b.ready = nil
	return ready()
}

// forgo reports a body that its client still keeps back, and keeps it from
// being asked for.
func (b *requestBody) forgo() bool {
	b.state.Lock()
	defer b.state.Unlock()
	if b.ready != nil {
		b.ready, b.unasked = nil, true
	}
	return b.unasked
}

func (b *requestBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return 0, b.err
	}
	if b.err = b.ask(); b.err != nil {
		err := b.err
		if errors.Is(err, errDetached) {
			b.err = nil // release looks for itself
		}
		return 0, err
	}
	// From here on either the client is waited for, or who reads the body.
	if !b.hold.Stall(0) { // who sends it upstream answers
		b.err = budget.ErrShed
		return 0, b.err
	}
	b.pace.begin(b.conn)
	n, err := b.from.Read(p)
	if err != nil && err != io.EOF && b.pace.over(err) && !b.gone() {
		err = ErrBodyStalled
	}
	b.pace.came(n)
	b.read += int64(n)
	if b.limit > 0 && b.read > b.limit {
		err = ErrBodyTooLarge
	}
	if err == io.EOF {
		_ = b.conn.SetReadDeadline(time.Time{}) // what comes next has its own
	}
	if b.err = err; err == io.EOF {
		b.hold.Give(b.took)
		b.hold.Stall(0) // since now
		b.ended()
		return n, err
	}
	b.hold.Stall(0)
	return n, err
}

// pace demands Progressing bytes in each span of time, or the body's end: a
// client that sends a byte now and then would hold its upstream connection
// for as long as it likes.
type pace struct {
	span  time.Duration
	until time.Time // of this span; zero: none has begun
	bytes int       // still to come in it
}

// Progressing is how many bytes a request body must bring in Limits.Progress.
const Progressing = 1 << 10

// begin sets the deadline of a span that has not begun.
func (p *pace) begin(c net.Conn) {
	if p.until.IsZero() {
		p.until, p.bytes = time.Now().Add(p.span), Progressing
		_ = c.SetReadDeadline(p.until)
	}
}

// came counts what was read, and ends a span that has brought enough once a
// fourth of it is over: not every read of a fast body sets a deadline.
func (p *pace) came(n int) {
	if p.bytes -= n; p.bytes <= 0 && time.Until(p.until) < p.span*3/4 {
		p.until = time.Time{}
	}
}

func (p *pace) over(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout() && !time.Now().Before(p.until)
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
	if b.forgo() {
		return false // the client waits for a 100 that never comes
	}
	_ = b.conn.SetReadDeadline(time.Now().Add(time.Second))
	defer func() { _ = b.conn.SetReadDeadline(time.Time{}) }()
	_, err := io.CopyN(io.Discard, b.from, most)
	b.err = errDetached
	return err == io.EOF
}
