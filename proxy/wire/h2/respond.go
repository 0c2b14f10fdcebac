package h2

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/ALRubinger/aileron/proxy/budget"
	"github.com/ALRubinger/aileron/proxy/wire"
)

// Two sizes of buffers: a body that arrives in small pieces, and perhaps slowly,
// needs no large one. While the budget is tight all of them are small: hundreds of
// bodies may wait for their turn to be searched, with a piece each.
var (
	copyBuffers  = sync.Pool{New: func() any { b := make([]byte, 16<<10); return &b }}
	smallBuffers = sync.Pool{New: func() any { b := make([]byte, 4<<10); return &b }}
)

// spareSize is how much is read of a response whose client has no window: enough
// to detect that it continues or has ended, and all that a client that reads
// nothing can hold.
const spareSize = 512

// buffer returns the buffer for the next piece of the response, and the pool that
// it goes back to; nil: it is the stream's own.
func (st *stream) buffer(large bool) (buf *[]byte, pool *sync.Pool) {
	c := st.c
	c.mu.Lock()
	window := min(c.sendWindow, st.sendWindow)
	c.mu.Unlock()
	if window <= 0 {
		spare := st.spare[:]
		return &spare, nil
	}
	pool = &smallBuffers
	if large && !c.account.Tight() {
		pool = &copyBuffers
	}
	return pool.Get().(*[]byte), pool
}

// deliver calls data, and holds the piece in the budget until the client has taken
// it.
func (st *stream) deliver(head *responseHead, p []byte, end bool, ahead int64) error {
	n := 2*int64(len(p)) + ahead
	if !st.hold.Stall(n) {
		st.cancel(budget.ErrShed)
		return budget.ErrShed
	}
	defer st.hold.Give(n) // the stream then waits for the next piece
	return st.data(head, p, end)
}

// headWait is how long a head waits for the first bytes of its body, so that a
// small response is sent in one write.
const headWait = 2 * time.Millisecond

var errShort = errors.New("write the response: the body is shorter than announced")

// respond writes res with its body and trailers, and closes the body. Each read of
// the body is sent at once.
func (st *stream) respond(res *http.Response) error {
	defer res.Body.Close()
	length := res.ContentLength
	bare := res.Request != nil && res.Request.Method == http.MethodHead || res.StatusCode == http.StatusNoContent ||
		res.StatusCode == http.StatusNotModified
	announced := length
	if res.StatusCode == http.StatusNoContent || bare && length == 0 {
		announced = -1
	}
	head := responseHead{status: res.StatusCode, header: res.Header, length: announced}
	if bare || length == 0 && res.Trailer == nil {
		return st.sendHead(&head, true)
	}
	pending := pendingHeads.Get().(*pendingHead)
	pending.hold(st, head)
	defer func() {
		pending.take()
		pendingHeads.Put(pending)
	}()
	large := false
	for left := length; ; {
		pooled, pool := st.buffer(large)
		buf := *pooled
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
		if !end && n >= len(buf)/2 { // otherwise upstream has no more for now
			ahead = wire.AheadOf(res.ProtoMajor, left)
		}
		var first *responseHead
		if waiting, waits := pending.take(); waits {
			head, first = waiting, &head
		}
		werr := st.deliver(first, data, end && !trailers, ahead)
		if pool != nil {
			pool.Put(pooled)
		}
		if werr != nil {
			return werr
		}
		if trailers {
			return st.sendHead(&responseHead{header: res.Trailer, length: -1}, true)
		}
		if end {
			return nil
		}
	}
}

// responseHead is a field section that is to be sent: a response's, or its
// trailers, whose status is 0.
type responseHead struct {
	status int
	header http.Header
	length int64 // -1: not announced
}

// pendingHead is a head that waits up to headWait for its body.
type pendingHead struct {
	mu    sync.Mutex
	timer *time.Timer // calls flush
	st    *stream     // nil: no head waits
	head  responseHead
}

// pendingHeads holds those of streams that are over. A timer of the last one that
// still fires sends a head without its body, which costs a write.
var pendingHeads = sync.Pool{New: func() any { return new(pendingHead) }}

// hold makes head wait.
func (p *pendingHead) hold(st *stream, head responseHead) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.st, p.head = st, head
	if p.timer == nil {
		p.timer = time.AfterFunc(headWait, p.flush)
		return
	}
	p.timer.Reset(headWait)
}

func (p *pendingHead) flush() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.st != nil {
		_ = p.st.sendHead(&p.head, false)
		p.st, p.head = nil, responseHead{}
	}
}

// take returns the head, and reports whether it has not been sent.
func (p *pendingHead) take() (head responseHead, waits bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.st == nil {
		return responseHead{}, false
	}
	p.timer.Stop()
	head = p.head
	p.st, p.head = nil, responseHead{}
	return head, true
}

// fail sends the head of a response whose body failed, and returns err: the stream
// is reset, so that the client does not take the response for complete.
func (p *pendingHead) fail(err error) error {
	p.flush()
	return err
}
