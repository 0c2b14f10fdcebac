package wire

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/ALRubinger/aileron/proxy/budget"
)

var errHeadTooLarge = errors.New("read the request head: it is too large")

// setReadDeadline sets the read deadline, to the past if ended returns true: the end of the
// connection may already have set one, which must stay in force.
func (s *connReader) setReadDeadline(at time.Time, ended func() bool) {
	_ = s.conn.SetReadDeadline(at)
	if ended() {
		_ = s.conn.SetReadDeadline(aLongTimeAgo)
	}
}

// head reads one request head: up to two empty lines before it (RFC 9112
// section 2.2 asks for one), then everything up to and including CRLFCRLF. io.EOF
// means that the client closed the connection between two requests. The slice is
// valid until the next read. A head that has begun is read to its end even if
// drains returns true.
func (s *connReader) head(limits Limits, ended, drains func() bool) ([]byte, error) {
	var last time.Time // deadline for the end of the head; zero: none has begun
	head, err := s.readHead(limits, &last, ended, drains)
	if !last.IsZero() {
		s.hold.Move(0)
	}
	return head, err
}

func (s *connReader) readHead(limits Limits, last *time.Time, ended, drains func() bool) ([]byte, error) {
	s.setReadDeadline(time.Now().Add(limits.Idle), ended)
	if drains() {
		s.setReadDeadline(time.Now().Add(min(drainWait, limits.Idle)), ended)
	}
	if err := s.waitRead(); err != nil && s.r == s.w {
		return nil, err
	}
	s.freeEmpty()
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
		// Bytes that cannot become a request are rejected at once rather than after
		// a timeout: clients of other protocols are sent the reason.
		if !promising {
			var perr *ProtocolError
			if promising, perr = checkPrefix(data, limits); perr != nil {
				return data, perr
			}
		}
		scanned = max(0, len(data)-3)
		if !started && len(data) > 0 {
			started = true
			s.hold.Stall(0) // until the head is complete
			*last = time.Now().Add(limits.Header)
			s.setReadDeadline(*last, ended)
		}
		if err := s.fill(); err != nil {
			var timeout net.Error
			if started && drains() && !ended() && errors.As(err, &timeout) && timeout.Timeout() && time.Now().Before(*last) {
				s.setReadDeadline(*last, ended)
				continue
			}
			if err == io.EOF && len(data) > 0 {
				return data, io.ErrUnexpectedEOF
			}
			return data, err
		}
	}
}

// headEnd returns the index after the empty line that ends a head, or -1. A bare
// LF LF ends it too, so that validate rejects it at once, without a timeout.
func headEnd(data []byte, from int) int {
	for at := from; ; {
		i := bytes.IndexByte(data[at:], '\n')
		if i < 0 {
			return -1
		}
		i += at
		at = i + 1
		switch next := data[at:]; {
		case len(next) >= 1 && next[0] == '\n':
			return at + 1
		case i > from && data[i-1] == '\r' && len(next) >= 2 && next[0] == '\r' && next[1] == '\n':
			return at + 2
		}
	}
}

// protocolErrorOf returns the rejection for a failed read of a head, or nil when no client
// is left to send it to.
func protocolErrorOf(err error, data []byte) *ProtocolError {
	var timeout net.Error
	var perr *ProtocolError
	switch {
	case errors.As(err, &perr):
		return perr
	case errors.Is(err, budget.ErrShed):
		return Exhausted()
	case errors.Is(err, errHeadTooLarge):
		return &ProtocolError{Status: http.StatusRequestHeaderFieldsTooLarge, Reason: "the request head is too large"}
	case len(data) == 0:
		return nil
	case errors.As(err, &timeout) && timeout.Timeout():
		return &ProtocolError{Status: http.StatusRequestTimeout, Reason: "the request head did not come in time"}
	case errors.Is(err, io.ErrUnexpectedEOF):
		return malformed("the connection ended inside the request head")
	}
	return nil
}
