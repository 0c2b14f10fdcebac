package h2

import (
	"context"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"

	"github.com/ALRubinger/aileron/proxy/budget"
	"github.com/ALRubinger/aileron/proxy/wire"
)

// stream is one request and its response.
type stream struct {
	c       *connection
	id      uint32
	ctx     context.Context //nolint:containedctx // the request's own
	cancel  context.CancelCauseFunc
	hold    *budget.Hold
	request *http.Request // until the handler has it
	over    atomic.Bool   // its handler has ended
	expect  bool          // the client waits for 100 Continue

	// Guarded by c.mu.
	sendWindow int64
	recvOwed   int64 // read bytes that the client does not know of
	sent       bool  // our END_STREAM is written, or waits for the flush
	closed     bool  // no frame of this stream is sent any more; see shut
	left       bool  // the client has reset it
	patience   *time.Timer
	watched    func() bool // ends the watch over ctx

	mu     sync.Mutex
	came   sync.Cond
	body   queue // received, not read
	window int64 // bytes that the client may still send
	length int64 // announced; -1: not
	got    int64
	paced  int64           // got, when it last was enough for a while
	waited time.Duration   // for more, since then
	whole  bool            // END_STREAM came
	err    error           // why no more will come, or be read
	spare  [spareSize]byte // what is read of the answer while the client has no window
}

func (c *connection) newStream(id uint32, length int64, whole bool) *stream {
	st := &stream{c: c, id: id, window: streamWindow, length: length, whole: whole, sendWindow: c.initialSend}
	st.came.L = &st.mu
	ctx, cancel := context.WithCancelCause(c.ctx)
	st.ctx, st.cancel = ctx, cancel
	st.hold = c.account.Hold(func() {
		cancel(budget.ErrShed)
		// It cannot end while another's write to the client lasts.
		time.AfterFunc(shedPatience, func() {
			if !st.over.Load() && c.flushing.Load() {
				c.shed()
			}
		})
	})
	return st
}

// shedPatience is how long a stream that must make room takes to end before its
// connection ends with it, if that is in a write.
const shedPatience = 250 * time.Millisecond

// end wakes whoever waits for the stream: nothing more will come.
func (st *stream) end(why error) {
	st.cancel(why)
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.err == nil {
		st.err = why
		st.came.Broadcast()
	}
}

// take puts a frame's data into the body. It returns the code with which the
// stream must be reset, and reports whether the data was kept: a frame that was
// not will never be read.
func (st *stream) take(data []byte, size int64, end bool) (code http2.ErrCode, kept bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.whole {
		return http2.ErrCodeStreamClosed, false
	}
	if st.window -= size; st.window < 0 {
		return http2.ErrCodeFlowControl, false
	}
	st.got += int64(len(data))
	st.whole = end
	defer st.came.Broadcast()
	if st.length >= 0 && (st.got > st.length || end && st.got != st.length) {
		if st.err == nil {
			st.err = errReset // and not the end, for the reader of the body
		}
		return http2.ErrCodeProtocol, false // RFC 9113 section 8.1.1
	}
	if st.err != nil {
		return http2.ErrCodeNo, false
	}
	if !st.keep(data) {
		st.err = budget.ErrShed
		st.cancel(budget.ErrShed)
		return http2.ErrCodeEnhanceYourCalm, false
	}
	return http2.ErrCodeNo, true
}

// keep puts data behind what was received and not read, and reports whether
// there was room for it. What is not read soon stands still. st.mu is held.
func (st *stream) keep(data []byte) bool {
	if len(data) == 0 {
		return true
	}
	n := st.body.cost(len(data))
	if st.body.size == 0 {
		st.hold.Stall(0)
	}
	if !st.hold.TryTake(n) {
		return false
	}
	st.body.put(data)
	return true
}

// allow grows the window that the client was told of.
func (st *stream) allow(n int64) {
	st.mu.Lock()
	st.window += n
	st.mu.Unlock()
}

// requestBody is the stream's inbound half for whoever sends it upstream.
type requestBody struct {
	st    *stream
	limit int64
	total int64
	took  int64 // what the stream's hold has for the upload
}

func (b *requestBody) Read(p []byte) (int, error) {
	st := b.st
	if st.expect {
		st.expect = false
		_ = st.c.write(func() {
			if !st.closed {
				st.c.fields(st.id, false, http.StatusContinue, nil, -1)
			}
		})
	}
	// From here on either the client is waited for, or who reads the body.
	if !st.hold.Stall(0) {
		return 0, budget.ErrShed
	}
	st.mu.Lock()
	for st.body.size == 0 && !st.whole && st.err == nil {
		st.wait()
	}
	n, err := 0, st.err
	if err == nil { // else what is left is abandonBody's, windows and all
		var freed int64
		n, freed = st.body.take(p)
		if st.body.size == 0 && st.whole {
			err = io.EOF
			freed += b.took
			b.took = 0
		}
		st.hold.Give(freed)
		st.hold.Stall(0) // since now
	}
	st.mu.Unlock()
	if n > 0 {
		st.c.giveBack(st, int64(n))
	}
	if b.total += int64(n); b.limit > 0 && b.total > b.limit {
		return n, wire.ErrBodyTooLarge
	}
	return n, err
}

// progress is what must come of a body in limits.Progress of waiting.
const progress = 1 << 10

// wait waits for the next piece of the body. One whose length was announced
// must keep coming; a stream without a length may be a conversation. st.mu is
// held.
func (st *stream) wait() {
	if st.length < 0 {
		st.came.Wait()
		return
	}
	if st.got-st.paced >= progress {
		st.paced, st.waited = st.got, 0
	}
	started := time.Now()
	timer := time.AfterFunc(st.c.limits.Progress-st.waited, func() {
		// The exchange is told, and not cancelled: it says why.
		st.mu.Lock()
		defer st.mu.Unlock()
		if st.err == nil {
			st.err = wire.ErrBodyStalled
			st.came.Broadcast()
		}
	})
	st.came.Wait()
	timer.Stop()
	st.waited += time.Since(started)
}

// Close leaves the rest of the body unread.
func (b *requestBody) Close() error {
	b.st.abandonBody()
	return nil
}

// abandonBody throws away what was received, and what will be.
func (st *stream) abandonBody() {
	st.mu.Lock()
	n := int64(st.body.size)
	st.hold.Move(st.body.drop())
	if st.err == nil {
		st.err = errReset
	}
	st.came.Broadcast()
	st.mu.Unlock()
	if n > 0 {
		st.c.giveBack(nil, n)
	}
}
