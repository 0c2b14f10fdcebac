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
