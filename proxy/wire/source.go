package wire

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/ALRubinger/aileron/internal/peer"
	"github.com/ALRubinger/aileron/proxy/budget"
)

const bufferSize = 4 << 10

// source is a connection's inbound half: a buffer that can be searched for
// the end of a head and then read as a stream, one reader at a time.
//
// While an exchange runs, and is not over soon, a read ahead goes on in the
// background. That is how a client's going away is noticed; what it reads is
// the next request's. The end of the client's outbound half alone is no going
// away: the client waits for its response, and is looked for from then on.
type source struct {
	conn net.Conn
	buf  []byte // unread bytes are buf[r:w]; nil while there are none
	r, w int
	one  [1]byte

	hold    *budget.Hold // of the buffer
	held    int64        // what it has of it
	most    int          // the largest buffer that is of use
	records bool         // whole TLS records have come, and have left their buffer

	mu       sync.Mutex
	timer    *time.Timer   // starts the background read
	gone     func()        // is told of its end; nil: nothing is to be watched
	watching chan struct{} // closed when the background read has ended
	watchErr error

	watched bool          // an exchange runs whose client is watched
	half    bool          // that client has ended its outbound half
	pause   time.Duration // until it is looked for again
}

// How often a client that has ended its outbound half is looked for.
const (
	firstLook = 10 * time.Millisecond
	lastLook  = time.Second
)

// patience is how long an exchange runs before its client is watched. Most
// are over by then, and two changes of goroutines cheaper.
const patience = 20 * time.Millisecond

var errHeadTooLarge = errors.New("read the request head: it is too large")

func newSource(c net.Conn) *source { return &source{conn: c} }

// buffers are those of the connections that have something to read. An idle
// one has none.
var buffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}

// midSize and largeSize are those of buffers that a head has outgrown the first
// of; the larger holds the largest head that is taken by default, and what shows
// that one is larger.
const (
	midSize   = 16 << 10
	largeSize = 64<<10 + bufferSize
)

var (
	midBuffers   = sync.Pool{New: func() any { return new([midSize]byte) }}
	largeBuffers = sync.Pool{New: func() any { return new([largeSize]byte) }}
)

// buffer returns a buffer of size bytes.
func buffer(size int) []byte {
	switch size {
	case bufferSize:
		return buffers.Get().(*[bufferSize]byte)[:]
	case midSize:
		return midBuffers.Get().(*[midSize]byte)[:]
	case largeSize:
		return largeBuffers.Get().(*[largeSize]byte)[:]
	}
	return make([]byte, size)
}

// recycle returns a buffer to its pool. Nothing may refer to it any more.
func recycle(buf []byte) {
	switch len(buf) {
	case bufferSize:
		buffers.Put((*[bufferSize]byte)(buf))
	case midSize:
		midBuffers.Put((*[midSize]byte)(buf))
	case largeSize:
		largeBuffers.Put((*[largeSize]byte)(buf))
	}
}

// rest gives the buffer back while there is nothing in it.
func (s *source) rest() {
	if s.r == s.w && s.buf != nil {
		recycle(s.buf)
		s.buf, s.r, s.w = nil, 0, 0
		s.hold.Give(s.held)
		s.held = 0
	}
}

// discard drops what was read and not used.
func (s *source) discard() {
	s.r = s.w
	s.rest()
	s.hold.Release()
}

// shrink drops a buffer that is larger than what is left in it needs.
func (s *source) shrink() {
	left := s.buf[s.r:s.w]
	if len(left) == 0 {
		s.rest()
		return
	}
	if len(s.buf) == bufferSize || len(left) > bufferSize {
		return
	}
	small, large := buffer(bufferSize), s.buf
	s.buf, s.r, s.w = small, 0, copy(small, left)
	recycle(large)
	s.hold.Give(s.held - bufferSize)
	s.held = bufferSize
}

// grow makes the buffer larger: soon as large as the largest head is.
func (s *source) grow() error {
	size := max(min(4*len(s.buf), s.most), len(s.buf)+bufferSize)
	more := int64(size - len(s.buf))
	if !s.records {
		more += record
	}
	if !s.hold.Take(more) {
		return budget.ErrShed
	}
	s.records = true
	s.held += int64(size - len(s.buf))
	grown, small := buffer(size), s.buf
	s.w = copy(grown, s.buf[s.r:s.w])
	s.buf, s.r = grown, 0
	recycle(small)
	return nil
}

// settle waits for the background read, if there is one.
func (s *source) settle() error {
	s.mu.Lock()
	s.gone, s.watched = nil, false
	watching := s.watching
	s.mu.Unlock()
	if watching == nil {
		return nil
	}
	<-watching
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watching = nil
	return s.watchErr
}

// watch reads ahead, after some patience, until something comes, and calls
// gone when that is the end of the connection.
func (s *source) watch(gone func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watching != nil || s.w > s.r {
		return
	}
	s.gone, s.watched = gone, true
	if s.timer == nil {
		s.timer = time.AfterFunc(patience, s.readAhead)
		return
	}
	s.timer.Reset(patience)
}

// readAhead is the background read, if there is still something to watch: the
// timer of an exchange that is over may have begun that of the next.
func (s *source) readAhead() {
	s.mu.Lock()
	gone := s.gone
	if gone != nil && s.half {
		s.look(gone)
		return
	}
	if gone == nil || s.watching != nil {
		s.mu.Unlock()
		return
	}
	done := make(chan struct{})
	s.gone, s.watching, s.watchErr = nil, done, nil
	s.mu.Unlock()
	defer close(done)
	err := s.fill()
	if err == nil {
		return
	}
	s.watchErr = err // read after done
	if err == io.EOF && s.keepLooking(gone) {
		return
	}
	gone()
}

// keepLooking begins to look for a client that has ended its outbound half,
// unless it is known to be gone already.
func (s *source) keepLooking(gone func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.watched { // the exchange is over
		return true
	}
	if peer.Gone(s.conn, netip.AddrPort{}) {
		return false
	}
	s.gone, s.half, s.pause = gone, true, firstLook
	s.timer.Reset(s.pause)
	return true
}

// look looks once for a client that has ended its outbound half. It releases
// s.mu.
func (s *source) look(gone func()) {
	left := peer.Gone(s.conn, netip.AddrPort{})
	if left {
		s.gone = nil
	} else {
		s.pause = min(2*s.pause, lastLook)
		s.timer.Reset(s.pause)
	}
	s.mu.Unlock()
	if left {
		gone()
	}
}

// close stops the timer and waits for the background read, whose connection
// is closed.
func (s *source) close() {
	_ = s.settle()
	if s.timer != nil {
		s.timer.Stop()
	}
}

// fill reads once into the buffer's free space, making room first. Without a
// buffer it reads one byte, and then has one: what waits needs none.
func (s *source) fill() error {
	if s.buf == nil {
		n, err := s.conn.Read(s.one[:])
		if n == 1 {
			if !s.hold.Take(bufferSize) {
				return budget.ErrShed
			}
			s.held = bufferSize
			s.buf = buffer(bufferSize)
			s.buf[0], s.r, s.w = s.one[0], 0, 1
			return nil
		}
		if err == nil {
			err = io.ErrNoProgress
		}
		return err
	}
	if s.r == s.w {
		s.r, s.w = 0, 0
	}
	if s.w == len(s.buf) {
		if s.r > 0 {
			copy(s.buf, s.buf[s.r:s.w])
			s.w -= s.r
			s.r = 0
		} else if err := s.grow(); err != nil {
			return err
		}
	}
	n, err := s.conn.Read(s.buf[s.w:])
	s.w += n
	if n > 0 {
		return nil
	}
	if err == nil {
		return io.ErrNoProgress
	}
	return err
}

// Read gives buffered bytes first, then reads straight into p.
func (s *source) Read(p []byte) (int, error) {
	if err := s.settle(); err != nil && s.r == s.w {
		return 0, err
	}
	if s.r < s.w {
		n := copy(p, s.buf[s.r:s.w])
		s.r += n
		return n, nil
	}
	s.rest()
	return s.conn.Read(p)
}

// line reads up to CRLF, of at most limit bytes with it, and returns it
// without. The slice is valid until the next call.
func (s *source) line(limit int) ([]byte, error) {
	if err := s.settle(); err != nil && s.r == s.w {
		return nil, unexpected(err)
	}
	for {
		if i := bytes.IndexByte(s.buf[s.r:s.w], '\n'); i >= 0 {
			line := s.buf[s.r : s.r+i]
			s.r += i + 1
			if i == 0 || line[i-1] != '\r' || i+1 > limit || bytes.IndexByte(line[:i-1], '\r') >= 0 {
				return nil, errChunk
			}
			return line[:i-1], nil
		}
		if s.w-s.r >= limit {
			return nil, errChunk
		}
		if err := s.fill(); err != nil {
			return nil, unexpected(err)
		}
	}
}

// until sets the read deadline, which is over when ended is true: whoever
// ends the connection may have set one before.
func (s *source) until(at time.Time, ended func() bool) {
	_ = s.conn.SetReadDeadline(at)
	if ended() {
		_ = s.conn.SetReadDeadline(aLongTimeAgo)
	}
}

// head reads one request head: up to two empty lines before it (RFC 9112
// section 2.2 asks for one), then everything up to and with CRLFCRLF. io.EOF
// means that the client ended between two requests. The slice is valid until
// the next read. A head that has begun is read to its end though drains.
func (s *source) head(limits Limits, ended, drains func() bool) ([]byte, error) {
	s.until(time.Now().Add(limits.Idle), ended)
	if drains() {
		s.until(time.Now().Add(min(drainWait, limits.Idle)), ended)
	}
	var last time.Time // for the end of the head
	if err := s.settle(); err != nil && s.r == s.w {
		return nil, err
	}
	s.rest()
	started, promising := false, false
	for scanned, skipped := 0, 0; ; {
		for skipped < 2 && s.w-s.r >= 2 && s.buf[s.r] == '\r' && s.buf[s.r+1] == '\n' {
			s.r += 2
			skipped++
		}
		data := s.buf[s.r:s.w]
		if i := headEnd(data, scanned); i >= 0 {
			if i > limits.Head {
				return nil, errHeadTooLarge
			}
			s.r += i
			return data[:i], nil
		}
		if len(data) > limits.Head {
			return nil, errHeadTooLarge
		}
		// What cannot become a request is refused at once, and not when its end
		// has not come in time: clients of other protocols hear why.
		if !promising {
			var fault *Fault
			if promising, fault = beginning(data, limits); fault != nil {
				return data, fault
			}
		}
		scanned = max(0, len(data)-3)
		if !started && len(data) > 0 {
			started = true
			s.hold.Stall(0) // until the head is there
			defer s.hold.Move(0)
			last = time.Now().Add(limits.Header)
			s.until(last, ended)
		}
		if err := s.fill(); err != nil {
			var timeout net.Error
			if started && drains() && !ended() && errors.As(err, &timeout) && timeout.Timeout() && time.Now().Before(last) {
				s.until(last, ended)
				continue
			}
			if err == io.EOF && len(data) > 0 {
				return data, io.ErrUnexpectedEOF
			}
			return data, err
		}
	}
}

// headEnd is the index after the empty line that ends a head, or -1. A bare
// LF LF ends it too: judge refuses it then, at once and not by time-out.
func headEnd(data []byte, from int) int {
	crlf := bytes.Index(data[from:], []byte("\r\n\r\n"))
	lf := bytes.Index(data[from:], []byte("\n\n"))
	switch {
	case crlf >= 0 && (lf < 0 || crlf < lf):
		return from + crlf + 4
	case lf >= 0:
		return from + lf + 2
	}
	return -1
}

// faultOf says a failed read of a head as a refusal, nil when there is
// nobody to say it to.
func faultOf(err error, data []byte) *Fault {
	var timeout net.Error
	var fault *Fault
	switch {
	case errors.As(err, &fault):
		return fault
	case errors.Is(err, budget.ErrShed):
		return Exhausted()
	case errors.Is(err, errHeadTooLarge):
		return &Fault{Status: http.StatusRequestHeaderFieldsTooLarge, Reason: "the request head is too large"}
	case len(data) == 0:
		return nil
	case errors.As(err, &timeout) && timeout.Timeout():
		return &Fault{Status: http.StatusRequestTimeout, Reason: "the request head did not come in time"}
	case errors.Is(err, io.ErrUnexpectedEOF):
		return malformed("the connection ended inside the request head")
	}
	return nil
}
