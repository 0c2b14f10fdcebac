package wire

import (
	"bytes"
	"io"
	"net"
	"sync"
	"time"

	"github.com/ALRubinger/aileron/proxy/budget"
)

// connReader is a connection's inbound half: a buffer that can be searched for
// the end of a head and then read as a stream, one reader at a time.
//
// During an exchange that takes longer than watchDelay, a background read detects
// that the client disconnects; what it reads belongs to the next request. A
// half-close alone is no disconnect: the client still waits for its response, and
// is polled from then on.
type connReader struct {
	conn net.Conn
	buf  []byte // unread bytes are buf[r:w]; nil while there are none
	r, w int
	one  [1]byte

	hold    *budget.Hold // of the buffer
	held    int64        // bytes that hold has for it
	most    int          // size of the largest useful buffer
	records bool         // TLS has received whole records, and keeps a buffer for them

	mu       sync.Mutex
	timer    *time.Timer   // starts the background read
	gone     func()        // called when the client disconnects; nil: there is no exchange to cancel
	watching chan struct{} // closed when the background read has ended
	watchErr error

	watched bool          // an exchange is in progress whose client may disconnect
	half    bool          // that client has half-closed the connection
	pause   time.Duration // until it is polled again
}

func newConnReader(c net.Conn) *connReader { return &connReader{conn: c} }

// fill reads once into the buffer's free space, and makes room first. Without a
// buffer it reads one byte and then allocates one: an idle connection needs none.
func (s *connReader) fill() error {
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

// Read implements io.Reader. It returns buffered bytes first, then reads directly
// into p.
func (s *connReader) Read(p []byte) (int, error) {
	if err := s.waitRead(); err != nil && s.r == s.w {
		return 0, err
	}
	if s.r < s.w {
		n := copy(p, s.buf[s.r:s.w])
		s.r += n
		return n, nil
	}
	s.freeEmpty()
	return s.conn.Read(p)
}

// line reads a line of at most limit bytes, its CRLF included, and returns it
// without the CRLF. The slice is valid until the next call.
func (s *connReader) line(limit int) ([]byte, error) {
	if err := s.waitRead(); err != nil && s.r == s.w {
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
