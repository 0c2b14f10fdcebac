package wire

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/ALRubinger/aileron/internal/peer"
	"github.com/ALRubinger/aileron/proxy/budget"
)

// Errors that reading a request body returns besides those of io.
var (
	ErrBodyTooLarge = errors.New("read the request body: it is too large")
	ErrBodyStalled  = errors.New("read the request body: it comes too slowly")
)

// lengthReader reads a body of a known length.
type lengthReader struct {
	src  *connReader
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

// requestBody lends the connection's inbound half to the upload that sends the body
// upstream. The upload may still read after its response has arrived, so the loan
// ends with detach, not with Close.
type requestBody struct {
	from  io.Reader
	conn  net.Conn
	limit int64
	rate  minDataRate
	ready func() error // sends 100 Continue before the first read; nil: the client does not wait
	ended func()       // called once, when the whole body has been read
	left  func()       // called if the client disconnects while the body is paused
	hold  *budget.Hold
	took  int64 // bytes that hold has for the upload

	mu       sync.Mutex
	read     int64
	err      error // sticky
	detached bool
	paused   bool        // since the last read
	poll     *time.Timer // while it is paused; nil: it never was

	// state guards detached, ready and skipped, and is not held over a read.
	state   sync.Mutex
	skipped bool // the response came first, and 100 Continue is never sent
}

// sendContinue sends 100 Continue to a client that waits for it, unless its body will not
// be read any more. The 100 is written under state, so that it never comes after,
// or inside, the head of the response.
func (b *requestBody) sendContinue() error {
	b.state.Lock()
	defer b.state.Unlock()
	if b.detached || b.skipped {
		return errDetached
	}
	if b.ready == nil {
		return nil
	}
	ready := b.ready
	b.ready = nil
	return ready()
}

// skipContinue makes sure that 100 Continue is not sent from now on, and reports whether
// the client still waits for it.
func (b *requestBody) skipContinue() bool {
	b.state.Lock()
	defer b.state.Unlock()
	if b.ready != nil {
		b.ready, b.skipped = nil, true
	}
	return b.skipped
}

func (b *requestBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.paused = false
	if b.err != nil {
		return 0, b.err
	}
	if b.err = b.sendContinue(); b.err != nil {
		err := b.err
		if errors.Is(err, errDetached) {
			b.err = nil // detach checks the state itself
		}
		return 0, err
	}
	// From here on the exchange waits either for the client or for the reader of
	// the body.
	if !b.hold.Stall(0) { // the reader's exchange sends the response
		b.err = budget.ErrShed
		return 0, b.err
	}
	b.rate.begin(b.conn)
	n, err := b.from.Read(p)
	if err != nil && err != io.EOF && b.rate.over(err) && !b.gone() {
		err = ErrBodyStalled
	}
	b.rate.came(n)
	b.read += int64(n)
	if b.limit > 0 && b.read > b.limit {
		err = ErrBodyTooLarge
	}
	if err == io.EOF {
		_ = b.conn.SetReadDeadline(time.Time{}) // the next read sets its own
	}
	if b.err = err; err == io.EOF {
		b.hold.Give(b.took)
		b.hold.Stall(0) // from now on
		b.ended()
		return n, err
	}
	b.hold.Stall(0)
	return n, err
}

// Pause ends the span of the minimum data rate: the body is not read for a while, which is not its client's fault. The
// next read begins another one. Meanwhile the client is polled: what it has sent hides its end from a read.
func (b *requestBody) Pause() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil || b.gone() {
		return
	}
	b.rate.until = time.Time{}
	_ = b.conn.SetReadDeadline(time.Time{})
	if b.paused = true; b.poll == nil {
		b.poll = time.AfterFunc(lastPoll, b.pollPaused)
	} else {
		b.poll.Reset(lastPoll)
	}
}

// pollPaused polls the client of a paused body, and calls left once it is known to be gone.
func (b *requestBody) pollPaused() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.state.Lock()
	defer b.state.Unlock()
	switch {
	case !b.paused || b.detached:
	case peer.Gone(b.conn, netip.AddrPort{}):
		b.left()
	default:
		b.poll.Reset(lastPoll)
	}
}

// Ready reports whether a read returns at once, because a piece of the body has
// been read with the head.
func (b *requestBody) Ready() bool {
	from, ok := b.from.(*lengthReader)
	return ok && from.src.w > from.src.r
}

// minDataRate enforces a minimum data rate: MinProgress bytes in each span of time, or
// the body's end. A client that sends a byte now and then would otherwise hold its
// upstream connection for as long as it likes.
type minDataRate struct {
	span  time.Duration
	until time.Time // end of this span; zero: none has begun
	bytes int       // still required in it
}

// MinProgress is how many bytes a request body must deliver in Limits.Progress.
const MinProgress = 1 << 10

// begin starts a span, if none has begun, and sets its deadline.
func (p *minDataRate) begin(c net.Conn) {
	if p.until.IsZero() {
		p.until, p.bytes = time.Now().Add(p.span), MinProgress
		_ = c.SetReadDeadline(p.until)
	}
}

// came counts n bytes that were read. It ends a span that has its bytes once a
// fourth of it is over: not every read of a fast body needs to set a deadline.
func (p *minDataRate) came(n int) {
	if p.bytes -= n; p.bytes <= 0 && time.Until(p.until) < p.span*3/4 {
		p.until = time.Time{}
	}
}

func (p *minDataRate) over(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout() && !time.Now().Before(p.until)
}

// Close leaves the rest of the body unread; detach deals with it.
func (b *requestBody) Close() error { return nil }

func (b *requestBody) gone() bool {
	b.state.Lock()
	defer b.state.Unlock()
	return b.detached
}

// detach takes the connection back. It interrupts a read in progress, discards up
// to most unread bytes, and reports whether the connection is at the next
// request's first byte.
func (b *requestBody) detach(most int64) bool {
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
	if b.skipContinue() {
		return false // the client waits for a 100 Continue that is never sent
	}
	_ = b.conn.SetReadDeadline(time.Now().Add(time.Second))
	defer func() { _ = b.conn.SetReadDeadline(time.Time{}) }()
	_, err := io.CopyN(io.Discard, b.from, most)
	b.err = errDetached
	return err == io.EOF
}
