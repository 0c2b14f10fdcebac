package h2

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"

	"golang.org/x/net/http2"

	"github.com/ALRubinger/aileron/proxy/budget"
	"github.com/ALRubinger/aileron/proxy/wire"
)

// connError ends a connection with a GOAWAY (RFC 9113 section 5.4.1).
type connError struct {
	code http2.ErrCode
	why  string
}

func (e connError) Error() string { return "serve HTTP/2: " + e.why }

func protocolError(format string, args ...any) error {
	return connError{http2.ErrCodeProtocol, fmt.Sprintf(format, args...)}
}

// survives deals with an error of reading or of a frame, and reports whether
// the connection goes on.
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
		return c.streamFault(ofStream) == nil
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

// streamFault resets a stream that a frame has broken. A stream that had not
// become a request is written down here; any other by its handler.
func (c *connection) streamFault(e http2.StreamError) error {
	c.mu.Lock()
	st := c.streams[e.StreamID]
	// either side has reset it already
	over := st != nil && (st.left || st.closed && slices.Contains(c.resets[:], e.StreamID))
	if st != nil && !over {
		c.shut(st) // before its handler is woken, which would reset it with another code
	}
	c.mu.Unlock()
	if st == nil && e.StreamID > c.lastID && e.StreamID%2 == 1 {
		c.lastID = e.StreamID
		c.refuse(&wire.ProtocolError{Status: http.StatusBadRequest,
			Reason: "the fields of the request are not well-formed HTTP/2"})
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

// refuseConn writes down a connection that broke while no stream was there to
// tell of it.
func (c *connection) refuseConn(why string) {
	c.handler.Refuse(&wire.ProtocolError{Status: http.StatusBadRequest, Reason: why})
}

// refuse writes a refusal down that is not answered, and ends the connection
// when its client is refused too often.
func (c *connection) refuse(f *wire.ProtocolError) {
	if res := c.handler.Refuse(f); res != nil && res.Close {
		c.endForRefusals()
	}
}

// endForRefusals ends the connection of a client whose refusals are more than
// may wait for their answers.
func (c *connection) endForRefusals() {
	c.goAway(http2.ErrCodeEnhanceYourCalm)
	c.cancel(errRefused)
}

// shed ends the connection because there is no memory for it.
func (c *connection) shed() { c.cancel(budget.ErrShed) }

// abandon ends all streams: the connection is gone.
func (c *connection) abandon() {
	c.mu.Lock()
	defer c.mu.Unlock()
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
