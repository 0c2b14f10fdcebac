package proxy

import (
	"errors"
	"io"
	"strings"
	"syscall"

	"golang.org/x/net/http2"
)

// denyBroken is the denial of a request that was on a connection, and got no
// whole head of a response: what host sent instead, if it sent anything.
func denyBroken(host string, err error, a *attempt) *Denial {
	var head *headError
	if errors.As(err, &head) {
		return deny(head.reason(), "the head of the response of %s %s", host, head.fault)
	}
	switch reason := brokenReason(err, a); reason {
	case reasonUpstreamHTTP:
		return deny(reason, "%s does not speak HTTP/2 as it agreed to", host)
	case reasonUpstreamHead:
		return deny(reason, "the head of the response of %s %s", host, tooLarge)
	case reasonUpstreamRST:
		return deny(reason, "%s reset the connection or the stream before it responded", host)
	case reasonUpstreamEnd:
		return deny(reason, "%s closed the connection before the head of its response had ended", host)
	}
	return deny(reasonUpstream, "the connection to %s broke before it responded", host)
}

// reason returns why a head is refused.
func (e *headError) reason() string {
	switch e.fault {
	case notHTTP:
		return reasonUpstreamHTTP
	case tooLarge, interimOnly:
		return reasonUpstreamHead
	}
	return reasonUpstream
}

// brokenReason returns why a connection brought no response.
func brokenReason(err error, a *attempt) string {
	if reason := brokenH2(err, a); reason != "" {
		return reason
	}
	switch {
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), a != nil && a.conn != nil && a.conn.reset.Load():
		return reasonUpstreamRST
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return reasonUpstreamEnd
	}
	return reasonUpstream
}

// brokenH2 returns why a response over HTTP/2 did not come, "" when err is not
// net/http's of HTTP/2, which have no types that are exported. What the host
// sends is in none of them but GOAWAY's, which is looked for first.
func brokenH2(err error, a *attempt) string {
	var stream http2.StreamError
	text := err.Error()
	switch {
	case a == nil || !a.h2:
		return ""
	case strings.HasPrefix(text, "http2: server sent GOAWAY"):
		return reasonUpstreamEnd
	case errors.As(err, &stream) && stream.Cause != nil && stream.Cause.Error() == "received from peer":
		return reasonUpstreamRST
	case strings.Contains(text, "header list "):
		return reasonUpstreamHead
	case strings.HasPrefix(text, "connection error: PROTOCOL_ERROR") && a.got() > maxResponseHead/2:
		return reasonUpstreamHead // a head that goes on ends the connection so
	case stream.StreamID != 0, strings.HasPrefix(text, "connection error: "), strings.Contains(text, "looked like an HTTP/1.1 header"),
		strings.HasPrefix(text, "http2: frame too large"), strings.HasPrefix(text, "malformed response from server"),
		strings.HasPrefix(text, "1xx informational response"):
		return reasonUpstreamHTTP
	}
	return ""
}

// repeatable reports that a request may be sent again where its connection
// turned out dead.
func repeatable(reason string) bool {
	return reason == reasonUpstream || reason == reasonUpstreamEnd || reason == reasonUpstreamRST
}
