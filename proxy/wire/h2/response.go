package h2

import (
	"context"
	"errors"
	"net/http"
	"time"

	"golang.org/x/net/http2"

	"github.com/ALRubinger/aileron/internal/panics"
)

// serve sends the response that the handler returns, and removes the stream.
func (st *stream) serve() {
	c := st.c
	defer c.running.Done()
	code := http2.ErrCodeInternal // of a handler that panics
	defer func() {
		if isShed(st.ctx) {
			code = http2.ErrCodeEnhanceYourCalm
		}
		st.cancel(nil)
		st.abandonBody()
		st.over.Store(true)
		st.hold.Release()
		st.remove(code)
		c.idled()
	}()
	defer func() { // the stream is reset
		if recover() != nil {
			panics.Log(c.log, "a response over HTTP/2")
		}
	}()
	res := st.answer()
	if st.respond(res) != nil {
		return
	}
	if res.Close {
		defer c.endForRefusals()
	}
	st.mu.Lock()
	whole := st.whole
	st.mu.Unlock()
	c.mu.Lock()
	if whole {
		c.shut(st) // both sides have ended it: nothing to reset
	}
	c.mu.Unlock()
	// The response is complete, and the rest of the request is not needed (RFC
	// 9113 section 8.1).
	code = http2.ErrCodeNo
}

// remove forgets a stream whose handler has returned. One that is still open is
// reset with code.
func (st *stream) remove(code http2.ErrCode) {
	c := st.c
	c.mu.Lock()
	closed := st.closed // for good
	if closed {
		delete(c.streams, st.id)
		c.grown.Broadcast()
	}
	c.mu.Unlock()
	if closed {
		return
	}
	_ = c.write(func() {
		delete(c.streams, st.id)
		if !st.closed {
			c.shut(st)
			c.reset(st.id, code)
		}
		c.grown.Broadcast()
	})
}

// idled is called after a stream has ended. After the last one it closes a
// connection that is closing, and starts the idle time of any other.
func (c *connection) idled() {
	c.mu.Lock()
	last, closing := len(c.streams) == 0, c.closing
	c.mu.Unlock()
	if !last {
		return
	}
	if closing {
		_ = c.conn.SetReadDeadline(time.Now())
		return
	}
	c.awaitFrame()
}

// sendHead writes a field section of the stream, unless it was reset.
func (st *stream) sendHead(head *responseHead, end bool) error {
	err := errReset
	werr := st.c.write(func() {
		if st.closed || st.ctx.Err() != nil {
			return
		}
		err = nil
		st.c.fields(st.id, end, head)
		if end {
			st.ended()
		}
	})
	return errors.Join(werr, err)
}

// ended records that END_STREAM is in the buffer. If the client has sent its own,
// the stream stops counting before the client can receive ours. c.mu is held.
func (st *stream) ended() {
	st.sent = true
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.whole {
		st.c.shut(st)
		delete(st.c.streams, st.id)
		if st.refused != nil && st.refused.Status == http.StatusBadRequest {
			st.c.reset(st.id, http2.ErrCodeProtocol) // clients have the response, and drop this; checkers ask for it
		}
	}
}

// endedByPeer records that the client has sent END_STREAM. It may open another
// stream with its next frame if the response is complete.
func (c *connection) endedByPeer(st *stream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if st.sent {
		c.shut(st)
	}
}

// shut closes a stream: it no longer counts among those that the client has
// open (RFC 9113 section 5.1.2), although its handler may not have returned.
// c.mu is held.
func (c *connection) shut(st *stream) {
	if !st.closed {
		st.closed = true
		c.open--
	}
}

// data writes p as DATA frames, as far as the windows allow, with head before the
// first of them.
func (st *stream) data(head *responseHead, p []byte, end bool) error {
	c := st.c
	c.waiting.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	whole := false
	defer c.unlessWhole(&whole)
	defer func() {
		if st.stallTimer != nil {
			st.stallTimer.Stop()
			st.stopWaking()
			st.stallTimer = nil
		}
	}()
	for first := true; ; first = false {
		if c.gone != nil || st.closed || st.ctx.Err() != nil {
			whole = true
			_ = c.written()
			return errReset
		}
		c.begin()
		if head != nil {
			c.fields(st.id, false, head)
			head = nil
		}
		if len(p) == 0 && !(first && end) {
			whole = true
			return c.written()
		}
		// A window may be below zero: RFC 9113 section 6.9.2.
		n := int(max(0, min(int64(len(p)), c.sendWindow, st.sendWindow, int64(c.peerFrame))))
		if n == 0 && len(p) > 0 {
			// The buffer is flushed before we wait for the client.
			if err := c.written(); err != nil {
				whole = true
				return err
			}
			st.awaitWindow()
			c.waiting.Add(1)
			continue
		}
		last := end && n == len(p)
		flags := http2.Flags(0)
		if last {
			flags = http2.FlagDataEndStream
		}
		c.frameHead(n, http2.FrameData, flags, st.id)
		_, _ = c.bw.Write(p[:n])
		c.moved = true
		c.sendWindow -= int64(n)
		st.sendWindow -= int64(n)
		if p = p[n:]; last {
			st.ended()
			whole = true
			return c.writtenLast()
		}
	}
}

// awaitWindow waits until something changes, but not forever: a client that opens
// no window holds the upstream's response. The timeout is for one call of data,
// whatever else happens on the connection. c.mu is held.
func (st *stream) awaitWindow() {
	if st.stallTimer == nil {
		st.stallTimer = time.AfterFunc(st.c.limits.Stalled, func() {
			st.end(errStalled)
			st.c.wake()
		})
		st.stopWaking = context.AfterFunc(st.ctx, st.c.wake)
	}
	st.c.grown.Wait()
}

func (c *connection) wake() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.grown.Broadcast()
}

var errStalled = errors.New("write the response: the client opens no window")
