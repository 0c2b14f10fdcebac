package h2

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/http2"

	"github.com/ALRubinger/aileron/proxy/budget"
	"github.com/ALRubinger/aileron/proxy/wire"
)

// connError is an error that ends a connection with GOAWAY (RFC 9113 section
// 5.4.1).
type connError struct {
	code http2.ErrCode
	why  string
}

func (e connError) Error() string { return "serve HTTP/2: " + e.why }

func protocolError(format string, args ...any) error {
	return connError{http2.ErrCodeProtocol, fmt.Sprintf(format, args...)}
}

// survives handles an error of reading or of a frame, and reports whether the
// connection continues.
func (c *connection) survives(err error) bool {
	var (
		ofStream http2.StreamError
		ofConn   http2.ConnectionError
		ours     connError
		timeout  net.Error
	)
	switch {
	case isShed(c.ctx):
		if c.in.inside {
			c.handler.Refuse(wire.Exhausted())
		}
		c.goAway(http2.ErrCodeEnhanceYourCalm)
	case errors.As(err, &ofStream):
		return c.streamError(ofStream) == nil
	case errors.As(err, &ours):
		c.refuseConn(ours.why)
		c.goAway(ours.code)
	case errors.As(err, &ofConn):
		c.refuseConn("the client broke HTTP/2's framing")
		c.goAway(http2.ErrCode(ofConn))
	case errors.Is(err, http2.ErrFrameTooLarge):
		c.refuseConn("a frame is larger than was agreed")
		c.goAway(http2.ErrCodeFrameSize)
	case errors.As(err, &timeout) && timeout.Timeout() && c.ctx.Err() == nil:
		if c.in.inside {
			c.refuseConn("a frame did not come in time")
		}
		c.goAway(http2.ErrCodeNo)
	}
	return false
}

// streamError resets a stream whose frame is invalid. A stream that had not become
// a request is recorded here; any other by its handler.
func (c *connection) streamError(e http2.StreamError) error {
	c.mu.Lock()
	st, crowded := c.streams[e.StreamID], c.crowded()
	// Either side has already reset it.
	over := st != nil && (st.left || st.closed && slices.Contains(c.resets[:], e.StreamID))
	if st != nil && !over {
		c.shut(st) // before its handler is woken, which would reset it with another code
	}
	c.mu.Unlock()
	if st == nil && e.StreamID > c.lastID && e.StreamID%2 == 1 {
		c.lastID = e.StreamID
		perr := malformed(ruleOf(e.Cause))
		switch ended := c.frameHeader.Flags.Has(http2.FlagHeadersEndStream); {
		case c.frameHeader.Type != http2.FrameHeaders:
			c.refuse(perr)
		case crowded:
			return c.refuseCrowd(e.StreamID)
		default:
			return c.openRefused(e.StreamID, ended, perr)
		}
	}
	if st != nil {
		st.end(errReset)
	}
	if over {
		return nil
	}
	return c.answer(func() {
		c.reset(e.StreamID, e.Code)
		c.grown.Broadcast()
	})
}

// ruleOf returns the rule that the fields of a request break for which the framer
// rejects them. Its errors have no types that are exported, and quote the fields.
func ruleOf(cause error) string {
	if cause == nil {
		return "the fields of the request are not well-formed HTTP/2"
	}
	switch text := cause.Error(); {
	case strings.HasPrefix(text, "invalid header field name"):
		return "a header field's name is not a token in lower case"
	case strings.HasPrefix(text, "invalid header field value"):
		return "a header field's value has a control character"
	}
	return "a pseudo-header field is unknown, repeated, or behind other fields"
}

// refuseConn records the failure of a connection that has no stream to record it.
func (c *connection) refuseConn(why string) {
	c.handler.Refuse(&wire.ProtocolError{Status: http.StatusBadRequest, Reason: why})
}

// refuse records a rejection that is sent without a response, and closes the
// connection if its client is rejected too often.
func (c *connection) refuse(f *wire.ProtocolError) {
	if res := c.handler.Refuse(f); res != nil && res.Close {
		c.endForRefusals()
	}
}

// endForRefusals closes the connection of a client that has more rejections than
// may be delayed at a time.
func (c *connection) endForRefusals() {
	c.goAway(http2.ErrCodeEnhanceYourCalm)
	c.cancel(errRefused)
}

// shed cancels the connection because there is no memory for it.
func (c *connection) shed() { c.cancel(budget.ErrShed) }

// abandon ends all streams after the connection is closed.
func (c *connection) abandon() {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.flush() // what waits for a writer's turn ends in whole frames
	if c.gone == nil {
		c.gone = errGone
	}
	for _, st := range c.streams {
		st.end(errGone)
	}
	c.grown.Broadcast()
}

var (
	errGone  = errors.New("serve HTTP/2: the client is gone")
	errReset = errors.New("serve HTTP/2: the stream was reset")

	errRefused = errors.New("serve HTTP/2: the client is refused too often")
)

// refuseStream records a rejected stream and resets it.
func (c *connection) refuseStream(id uint32, perr *wire.ProtocolError, code http2.ErrCode) error {
	c.refuse(perr)
	return c.answer(func() { c.reset(id, code) })
}

// refuseCrowd rejects a stream over the limit, and after many of them the
// connection: a client that has received the limit does not exceed it so often.
func (c *connection) refuseCrowd(id uint32) error {
	if c.refused++; c.refused > maxRefused {
		return connError{http2.ErrCodeEnhanceYourCalm, "the client opens more streams than it may"}
	}
	return c.refuseStream(id,
		&wire.ProtocolError{Status: http.StatusTooManyRequests, Reason: "the connection has too many requests under way"},
		http2.ErrCodeRefusedStream)
}

// errEnded is returned for a frame on a stream that both sides have ended.
var errEnded = connError{http2.ErrCodeStreamClosed, "a stream that has ended is opened again"}
