package h2

import (
	"context"
	"io"
	"net/http"
	"strings"
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
	head    wire.Head           // what the request's head takes of hold
	request *http.Request       // until the handler has it
	refused *wire.ProtocolError // why there is none; nil: there is
	over    atomic.Bool         // its handler has ended
	expect  bool                // the client waits for 100 Continue

	// Guarded by c.mu.
	sendWindow int64
	recvOwed   int64       // bytes read and not yet returned by WINDOW_UPDATE
	sent       bool        // our END_STREAM is written, or waits for the flush
	closed     bool        // no frame of this stream is sent any more; see shut
	left       bool        // the client has reset it
	stallTimer *time.Timer // of awaitWindow
	stopWaking func() bool // stops waking the writer when ctx ends

	mu     sync.Mutex
	came   sync.Cond
	body   queue // received and not read
	window int64 // bytes that the client may still send
	length int64 // Content-Length; -1: none
	got    int64
	paced  int64           // got, when the minimum data rate was last met
	waited time.Duration   // for more, since then
	pace   time.Duration   // in which another wire.MinProgress bytes must come; 0: none
	whole  bool            // END_STREAM was received
	err    error           // why no more will be received, or read
	spare  [spareSize]byte // buffer for the response while the client has no window
}

func (c *connection) newStream(id uint32, length int64, whole bool) *stream {
	st := &stream{c: c, id: id, window: streamWindow, length: length, whole: whole, sendWindow: c.initialSend}
	st.came.L = &st.mu
	ctx, cancel := context.WithCancelCause(c.ctx)
	st.ctx, st.cancel = ctx, cancel
	st.hold = c.account.Hold(func() {
		cancel(budget.ErrShed)
		// It cannot end while another stream's write to the client blocks.
		time.AfterFunc(shedTimeout, func() {
			if !st.over.Load() && c.flushing.Load() {
				c.shed()
			}
		})
	})
	return st
}

// shedTimeout is how long a shed stream may take to end. If a write to the client
// still blocks then, the whole connection is shed. Tests change it.
var shedTimeout = 250 * time.Millisecond

// end cancels the stream and wakes the reader of its body: nothing more will be
// received.
func (st *stream) end(why error) {
	st.cancel(why)
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.err == nil {
		st.err = why
		st.came.Broadcast()
	}
}

// take appends a frame's data to the body. It returns the code with which the
// stream must be reset, and reports whether the data was kept and can be read.
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
	if st.length >= 0 && (st.got > st.length || end && st.got != st.length) {
		// RFC 9113 section 8.1.1. The reader of the body is not woken: it must not see a regular end, and streamError
		// wakes it when the stream can carry no response any more.
		return http2.ErrCodeProtocol, false
	}
	st.whole = end
	defer st.came.Broadcast()
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

// keep appends data to the unread body, and reports whether there was room for it.
// A body that is not read counts as standing still. st.mu is held.
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

// allow grows the receive window by n bytes, as a WINDOW_UPDATE announces.
func (st *stream) allow(n int64) {
	st.mu.Lock()
	st.window += n
	st.mu.Unlock()
}

// requestBody is the stream's inbound half for the transport that sends it
// upstream.
type requestBody struct {
	st    *stream
	limit int64
	total int64
	took  int64 // bytes that the stream's hold has for the upload
}

func (b *requestBody) Read(p []byte) (int, error) {
	st := b.st
	if st.expect {
		st.expect = false
		_ = st.c.write(func() {
			if !st.closed {
				st.c.fields(st.id, false, &responseHead{status: http.StatusContinue, length: -1})
			}
		})
	}
	// From here on the stream waits either for the client or for the reader of the
	// body.
	if !st.hold.Stall(0) {
		return 0, budget.ErrShed
	}
	st.mu.Lock()
	for st.body.size == 0 && !st.whole && st.err == nil {
		st.wait()
	}
	n, err := 0, st.err
	if err == nil { // otherwise abandonBody returns the rest to the windows
		var freed int64
		n, freed = st.body.take(p)
		if st.body.size == 0 && st.whole {
			err = io.EOF
			freed += b.took
			b.took = 0
		}
		st.hold.Give(freed)
		st.hold.Stall(0) // from now on
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

// Ready reports whether a read returns at once.
func (b *requestBody) Ready() bool {
	b.st.mu.Lock()
	defer b.st.mu.Unlock()
	return b.st.body.size > 0
}

// paceOf returns the time within which a request must deliver another
// wire.MinProgress bytes of its body. gRPC and Connect have streams whose client
// waits for what the server sends: they have none.
func paceOf(r *http.Request, l wire.Limits) time.Duration {
	media := r.Header.Get("Content-Type")
	switch {
	case r.ContentLength >= 0:
		return l.Progress
	case strings.HasPrefix(media, "application/grpc"), strings.HasPrefix(media, "application/connect+"):
		return 0
	}
	return l.Pause
}

// wait waits for the next piece of the body, which must keep its pace. st.mu is
// held.
func (st *stream) wait() {
	if st.pace == 0 {
		st.came.Wait()
		return
	}
	if st.got-st.paced >= wire.MinProgress {
		st.paced, st.waited = st.got, 0
	}
	started := time.Now()
	timer := time.AfterFunc(st.pace-st.waited, func() {
		// The body fails and the exchange is not canceled, so that it can respond
		// with the reason.
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

// abandonBody discards the unread body and everything that follows.
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
