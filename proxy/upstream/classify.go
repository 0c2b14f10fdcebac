package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/ALRubinger/aileron/proxy/budget"
	"golang.org/x/net/http2"
)

// classify returns the Error of a request to host that got no response. a is the
// attempt to send it, nil where only a connection was asked for.
func (c *Client) classify(ctx context.Context, host string, err error, a *attempt) *Error {
	e := &Error{Host: host}
	e.Kind, e.Detail = kindOf(ctx, err, a)
	var denied *addressError
	if errors.As(err, &denied) {
		e.Range = denied.block
	}
	var via *proxyError
	if errors.As(err, &via) {
		e.Proxy = via.at
	}
	if e.Kind.unreached() && (a == nil || a.conn == nil) && !c.direct.Load() {
		e.Unused = c.opts.UnusedProxy
	}
	return e
}

func kindOf(ctx context.Context, err error, a *attempt) (kind Kind, detail string) {
	var (
		denied   *addressError
		notFound *net.DNSError
		network  *net.OpError
		unsafe   *handshakeError
		proxy    *proxyError
		head     *headError
		timeout  net.Error
		record   tls.RecordHeaderError
	)
	switch {
	case a != nil && a.stalled.Load():
		return BodyStalled, ""
	case a != nil && a.late.Load():
		return Timeout, ""
	case errors.As(err, &denied):
		return AddressDenied, denied.class
	case IsOutOfDescriptors(err):
		return OutOfDescriptors, ""
	case ctx.Err() != nil:
		return Canceled, ""
	case a != nil && a.h2 && (a.refused.Load() || saysUnprocessed(err)):
		return Unprocessed, ""
	case errors.As(err, &proxy):
		return proxy.kind, proxy.what
	case errors.As(err, &notFound) && notFound.IsNotFound:
		return NameNotFound, ""
	case errors.As(err, &notFound) && !notFound.IsTimeout:
		return NameNotResolved, ""
	case errors.As(err, &record):
		return NotTLS, ""
	case errors.As(err, &network) && network.Op == "remote error":
		kind, detail = alertKind(network.Err, errors.As(err, &unsafe) && unsafe.asked || a.wasAsked())
		if kind != ClientCertificate && a != nil && a.mayHaveArrived() { // the handshake was over
			return Closed, ""
		}
		return kind, detail
	case errors.As(err, &unsafe):
		return verifyKind(unsafe.error)
	case errors.As(err, &head):
		return head.kind(), head.rule
	case errors.As(err, &timeout) && timeout.Timeout() && a != nil && a.gotByte.Load():
		return HeadTooSlow, ""
	case errors.As(err, &timeout) && timeout.Timeout():
		return Timeout, ""
	case errors.As(err, &network) && network.Op == "dial":
		return Unreachable, ""
	}
	return brokenKind(err, a)
}

// unreached reports whether k is what a network does that lets hosts be reached through its proxy alone.
func (k Kind) unreached() bool {
	return k == NameNotResolved || k == NameNotFound || k == Unreachable || k == Timeout
}

// brokenKind returns why a connection brought no response.
func brokenKind(err error, a *attempt) (kind Kind, detail string) {
	if a != nil && a.h2 {
		if kind, detail := h2Kind(err, a); kind != Broken {
			return kind, detail
		}
	}
	switch {
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), a.sawReset():
		return Reset, ""
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return Closed, ""
	}
	return Broken, ""
}

// h2Kind returns why a response over HTTP/2 did not come, or Broken when err is
// none of net/http's errors about HTTP/2, which have no types that are exported.
// Of what the host sends they quote nothing but GOAWAY's text, which is therefore
// looked for first.
func h2Kind(err error, a *attempt) (kind Kind, detail string) {
	var stream http2.StreamError
	text := err.Error()
	switch {
	case strings.HasPrefix(text, "http2: server sent GOAWAY"):
		return Closed, ""
	case errors.As(err, &stream) && stream.Cause != nil && stream.Cause.Error() == "received from peer":
		return Reset, ""
	case strings.Contains(text, "header list "):
		return HeadTooLarge, tooLarge
	case strings.HasPrefix(text, "connection error: PROTOCOL_ERROR") && a.received() > maxResponseHead/2:
		return HeadTooLarge, tooLarge // a head that goes on ends the connection so
	case stream.StreamID != 0, strings.HasPrefix(text, "connection error: "),
		strings.Contains(text, "looked like an HTTP/1.1 header"), strings.HasPrefix(text, "http2: frame too large"),
		strings.HasPrefix(text, "malformed response from server"), strings.HasPrefix(text, "1xx informational response"):
		return NotHTTP2, ""
	}
	return Broken, ""
}

// saysUnprocessed reports whether err is one with which a host says that it did not process a request (RFC 9113
// section 8.7): a GOAWAY with the number of an earlier stream, or REFUSED_STREAM. Of the errors of net/http, these two
// begin so. Another, which says that the host closed the connection, is about streams that it may have processed.
func saysUnprocessed(err error) bool {
	var stream http2.StreamError
	if errors.As(err, &stream) {
		return stream.Code == http2.ErrCodeRefusedStream && stream.Cause != nil &&
			stream.Cause.Error() == "received from peer"
	}
	text, _ := strings.CutPrefix(err.Error(), "http2: Transport: cannot retry err [")
	return strings.HasPrefix(text, "http2: Transport received Server's graceful shutdown GOAWAY") ||
		strings.HasPrefix(text, "http2: Transport received GOAWAY from server") ||
		strings.HasPrefix(text, "stream error: ") && strings.Contains(text, "; REFUSED_STREAM; received from peer]")
}

// IsOutOfDescriptors reports whether err is that of a process or a system that
// has no file descriptor left. The resolver keeps only the text of such an error.
func IsOutOfDescriptors(err error) bool {
	var lookup *net.DNSError
	resolving := errors.As(err, &lookup)
	for _, errno := range []error{syscall.EMFILE, syscall.ENFILE} {
		if errors.Is(err, errno) || resolving && strings.HasSuffix(lookup.Err, errno.Error()) {
			return true
		}
	}
	return errors.Is(err, budget.ErrOutOfDescriptors)
}
