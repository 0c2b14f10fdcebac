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
