package wire

import (
	"bytes"
	"io"
	"net"
	"sync"
	"time"

	"github.com/ALRubinger/aileron/proxy/budget"
)

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

func newSource(c net.Conn) *source { return &source{conn: c} }

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
