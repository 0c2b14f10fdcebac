package h2

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"golang.org/x/net/http2"

	"github.com/ALRubinger/aileron/internal/panics"
	"github.com/ALRubinger/aileron/proxy/budget"
	"github.com/ALRubinger/aileron/proxy/wire"
)

// serve answers the stream with what answer gives, and forgets it.
func (st *stream) serve(answer func() *http.Response) {
	c := st.c
	code := http2.ErrCodeInternal // of a handler that panics
	defer func() {
		if isShed(st.ctx) {
			code = http2.ErrCodeEnhanceYourCalm
		}
		st.cancel(nil)
		st.abandonBody()
		st.over.Store(true)
		st.hold.Release()
		_ = c.write(func() {
			delete(c.streams, st.id)
			if !st.closed {
				c.shut(st)
				c.reset(st.id, code)
			}
			c.grown.Broadcast()
		})
		c.idled()
	}()
	defer func() { // the stream is reset
		if recover() != nil {
			panics.Log(c.log, "a response over HTTP/2")
		}
	}()
	res := answer()
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
	// The answer is complete, and the rest of the request is not wanted (RFC
	// 9113 section 8.1).
	code = http2.ErrCodeNo
}

// idled ends the connection after its last stream, when it is to end, and
// else lets the idle time begin.
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

// Two sizes of buffers: what comes in small pieces, and may come slowly, needs
// no large one.
var (
	copyBuffers  = sync.Pool{New: func() any { b := make([]byte, 16<<10); return &b }}
	smallBuffers = sync.Pool{New: func() any { b := make([]byte, 4<<10); return &b }}
)

// spareSize is how much is read of an answer whose client has no window: that
// it goes on, or has ended, is seen; a client that reads nothing holds no more.
const spareSize = 512

// buffer returns what the next piece of the answer is read into.
func (st *stream) buffer(large bool) (buf []byte, free func()) {
	c := st.c
	c.mu.Lock()
	window := min(c.sendWindow, st.sendWindow)
	c.mu.Unlock()
	if window <= 0 {
		return st.spare[:], func() {}
	}
	pool := &smallBuffers
	if large {
		pool = &copyBuffers
	}
	pooled := pool.Get().(*[]byte)
	return *pooled, func() { pool.Put(pooled) }
}

// deliver is data, with what it holds while the client does not take it.
func (st *stream) deliver(head func(), p []byte, end bool, ahead int64) error {
	n := 2*int64(len(p)) + ahead
	if !st.hold.Stall(n) {
		st.cancel(budget.ErrShed)
		return budget.ErrShed
	}
	defer st.hold.Give(n) // and the next piece is waited for
	return st.data(head, p, end)
}

// headWait is how long a head waits for the first bytes of its body, so that
// a small response leaves in one write.
const headWait = 2 * time.Millisecond

var errShort = errors.New("write the response: the body is shorter than announced")

// respond writes res, body, trailers and all, and closes its body. Each read
// of the body leaves as soon as it is there.
func (st *stream) respond(res *http.Response) error {
	defer res.Body.Close()
	length := res.ContentLength
	bare := res.Request != nil && res.Request.Method == http.MethodHead || res.StatusCode == http.StatusNoContent ||
		res.StatusCode == http.StatusNotModified
	announced := length
	if res.StatusCode == http.StatusNoContent || bare && length == 0 {
		announced = -1
	}
	head := func(end bool) { st.c.fields(st.id, end, res.StatusCode, res.Header, announced) }
	if bare || length == 0 && res.Trailer == nil {
		return st.send(func() { head(true) }, true)
	}
	pending := &pendingHead{st: st, head: func() { head(false) }}
	timer := time.AfterFunc(headWait, pending.flush)
	defer timer.Stop()
	large := false
	for left := length; ; {
		buf, free := st.buffer(large)
		n, err := res.Body.Read(buf)
		data := buf[:n]
		large = large || n >= len(buf)/2 && n > spareSize // the scrubber may hold some back
		if left >= 0 {
			if int64(n) > left {
				return pending.fail(errShort)
			}
			left -= int64(n)
		}
		end := err == io.EOF || left == 0
		if end && err == nil { // the trailers, if any, come with the end
			var none [1]byte
			_, err = res.Body.Read(none[:])
		}
		switch {
		case end && left > 0:
			return pending.fail(errShort)
		case err != nil && err != io.EOF:
			return pending.fail(err)
		}
		trailers := end && len(res.Trailer) > 0
		ahead := int64(0)
		if !end && n >= len(buf)/2 { // else upstream has no more for now
			ahead = wire.AheadOf(res.ProtoMajor, left)
		}
		werr := st.deliver(pending.take(), data, end && !trailers, ahead)
		free()
		if werr != nil {
			return werr
		}
		if trailers {
			return st.send(func() { st.c.fields(st.id, true, 0, res.Trailer, -1) }, true)
		}
		if end {
			return nil
		}
	}
}

// send writes frames of the stream, unless it was reset.
func (st *stream) send(f func(), end bool) error {
	err := errReset
	werr := st.c.write(func() {
		if st.closed || st.ctx.Err() != nil {
			return
		}
		err = nil
		f()
		if end {
			st.ended()
		}
	})
	return errors.Join(werr, err)
}

// ended notes that END_STREAM is in the buffer. When the client has sent its
// own, the stream's place is free before the client can know. c.mu is held.
func (st *stream) ended() {
	st.sent = true
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.whole {
		st.c.shut(st)
		delete(st.c.streams, st.id)
	}
}

// endedByPeer notes that the client has sent END_STREAM. It may open another
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

// data writes p as DATA frames, as the windows allow, with head before the
// first of them.
func (st *stream) data(head func(), p []byte, end bool) error {
	c := st.c
	c.waiting.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	whole := false
	defer c.unlessWhole(&whole)
	defer func() {
		if st.patience != nil {
			st.patience.Stop()
			st.watched()
			st.patience = nil
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
			head()
			head = nil
		}
		if len(p) == 0 && !(first && end) {
			whole = true
			return c.written()
		}
		// A window may be below zero: RFC 9113 section 6.9.2.
		n := int(max(0, min(int64(len(p)), c.sendWindow, st.sendWindow, int64(c.peerFrame))))
		if n == 0 && len(p) > 0 {
			// What is there leaves before we wait for the client.
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
			return c.written()
		}
	}
}

// awaitWindow waits until something changes, but not forever: a client that
// opens no window holds the upstream's answer. Its patience is for one call of
// data, whatever else happens on the connection. c.mu is held.
func (st *stream) awaitWindow() {
	if st.patience == nil {
		st.patience = time.AfterFunc(st.c.limits.Stalled, func() {
			st.end(errStalled)
			st.c.wake()
		})
		st.watched = context.AfterFunc(st.ctx, st.c.wake)
	}
	st.c.grown.Wait()
}

func (c *connection) wake() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.grown.Broadcast()
}

var errStalled = errors.New("write the response: the client opens no window")

// pendingHead is a head that waits for its body, but not for long.
type pendingHead struct {
	mu   sync.Mutex
	st   *stream
	head func()
}

func (p *pendingHead) flush() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.head != nil {
		_ = p.st.send(p.head, false)
		p.head = nil
	}
}

// take gives the head when it has not left.
func (p *pendingHead) take() func() {
	p.mu.Lock()
	defer p.mu.Unlock()
	head := p.head
	p.head = nil
	return head
}

// fail is an answer that broke off: the client must not take it for whole.
func (p *pendingHead) fail(err error) error {
	p.flush()
	return err
}
