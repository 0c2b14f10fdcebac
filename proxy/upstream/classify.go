package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"

	"golang.org/x/net/http2"
)

// classify returns the Error of a request to host that got no response. a is
// the attempt to send it, nil where only a connection was asked for.
func classify(ctx context.Context, host string, err error, a *attempt) *Error {
	e := &Error{Host: host, Sent: a.reached()}
	var (
		refused  *addressError
		notFound *net.DNSError
		broken   *net.OpError
		unsafe   *handshakeError
		head     *headError
		timeout  net.Error
		record   tls.RecordHeaderError
	)
	switch {
	case errors.As(err, &refused):
		e.Kind, e.Detail = AddressDenied, refused.why
	case IsOutOfDescriptors(err):
		e.Kind = NoDescriptor
	case ctx.Err() != nil:
		e.Kind = Canceled
	case errors.As(err, &notFound) && !notFound.IsTimeout:
		e.Kind = NameNotResolved
	case errors.As(err, &record):
		e.Kind = NotTLS
	case errors.As(err, &unsafe), errors.As(err, &broken) && broken.Op == "remote error":
		e.Kind = NotVerified
	case errors.As(err, &head) && head.odd, malformedFraming(err):
		e.Kind = FramingLookalike
	case errors.As(err, &timeout) && timeout.Timeout() && a != nil && a.answered.Load():
		e.Kind = HeadTooSlow
	case errors.As(err, &timeout) && timeout.Timeout():
		e.Kind = Timeout
	case errors.As(err, &broken) && broken.Op == "dial":
		e.Kind = Unreachable
	case errors.As(err, &head):
		e.Kind, e.Detail = head.kind(), head.fault
	default:
		e.Kind = brokenKind(err, a)
	}
	if e.Kind == HeadTooLarge && e.Detail == "" {
		e.Detail = tooLarge
	}
	return e
}

// kind returns why a head is refused.
func (e *headError) kind() Kind {
	switch e.fault {
	case notHTTP:
		return NotHTTP
	case tooLarge, interimOnly:
		return HeadTooLarge
	}
	return HeadMalformed
}

// brokenKind returns why a connection brought no response.
func brokenKind(err error, a *attempt) Kind {
	if kind, ok := brokenH2(err, a); ok {
		return kind
	}
	switch {
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), a != nil && a.conn != nil && a.conn.reset.Load():
		return Reset
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return Closed
	}
	return Broken
}

// brokenH2 returns why a response over HTTP/2 did not come. ok is false when
// err is not one of net/http's errors of HTTP/2, which have no types that are
// exported. What the host sends is in none of them but GOAWAY's, which is
// looked for first.
func brokenH2(err error, a *attempt) (kind Kind, ok bool) {
	var stream http2.StreamError
	text := err.Error()
	switch {
	case a == nil || !a.h2:
		return Broken, false
	case strings.HasPrefix(text, "http2: server sent GOAWAY"):
		return Closed, true
	case errors.As(err, &stream) && stream.Cause != nil && stream.Cause.Error() == "received from peer":
		return Reset, true
	case strings.Contains(text, "header list "):
		return HeadTooLarge, true
	case strings.HasPrefix(text, "connection error: PROTOCOL_ERROR") && a.got() > maxResponseHead/2:
		return HeadTooLarge, true // a head that goes on ends the connection so
	case stream.StreamID != 0, strings.HasPrefix(text, "connection error: "), strings.Contains(text, "looked like an HTTP/1.1 header"),
		strings.HasPrefix(text, "http2: frame too large"), strings.HasPrefix(text, "malformed response from server"),
		strings.HasPrefix(text, "1xx informational response"):
		return NotHTTP2, true
	}
	return Broken, false
}

// ErrOutOfDescriptors is the error of a [Descriptors] that has none left.
var ErrOutOfDescriptors = errors.New("dial upstream: the process has no file descriptor left")

// IsOutOfDescriptors reports whether err is that of a process or a system that
// has no descriptor left. The resolver keeps no more than its text.
func IsOutOfDescriptors(err error) bool {
	var lookup *net.DNSError
	resolving := errors.As(err, &lookup)
	for _, errno := range []error{syscall.EMFILE, syscall.ENFILE} {
		if errors.Is(err, errno) || resolving && strings.HasSuffix(lookup.Err, errno.Error()) {
			return true
		}
	}
	return errors.Is(err, ErrOutOfDescriptors)
}
