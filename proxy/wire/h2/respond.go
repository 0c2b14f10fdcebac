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
// needs no large one.
var (
	copyBuffers  = sync.Pool{New: func() any { b := make([]byte, 16<<10); return &b }}
	smallBuffers = sync.Pool{New: func() any { b := make([]byte, 4<<10); return &b }}
)

// spareSize is how much is read of a response whose client has no window: enough
// to detect that it continues or has ended, and all that a client that reads
// nothing can hold.
const spareSize = 512

// buffer returns the buffer for the next piece of the response.
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

// deliver calls data, and holds the piece in the budget until the client has taken
// it.
func (st *stream) deliver(head func(), p []byte, end bool, ahead int64) error {
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
		if !end && n >= len(buf)/2 { // otherwise upstream has no more for now
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

// pendingHead is a head that waits up to headWait for its body.
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

// take returns the head, or nil if it has been sent.
func (p *pendingHead) take() func() {
	p.mu.Lock()
	defer p.mu.Unlock()
	head := p.head
	p.head = nil
	return head
}

// fail sends the head of a response whose body failed, and returns err: the stream
// is reset, so that the client does not take the response for complete.
func (p *pendingHead) fail(err error) error {
	p.flush()
	return err
}
