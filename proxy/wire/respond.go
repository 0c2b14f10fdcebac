package wire

import (
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// largePiece is the most that is read of a body at once: one TLS record.
const largePiece = 16 << 10

// Two sizes of buffers: a body that arrives in small pieces, and perhaps slowly,
// needs no large one.
var (
	copyBuffers  = sync.Pool{New: func() any { b := make([]byte, largePiece+chunkHead+2); return &b }}
	smallBuffers = sync.Pool{New: func() any { b := make([]byte, 8<<10); return &b }}
)

// headWait is how long a head waits for the first bytes of its body, so that a
// small response is sent in one write.
const headWait = 2 * time.Millisecond

// chunkHead is the size of a chunk's size line: up to 4 digits and CRLF.
const chunkHead = 6

// Phrased is a body whose response has a reason phrase of its own: printable ASCII, without a line end. Any other
// response gets the standard phrase of its status, never the upstream's, which is not searched for secrets.
type Phrased interface{ ReasonPhrase() string }

// Respond writes res with its body, and closes the body. Each read of the body is
// sent at once, in one write. An error means that the client did not receive all
// of it; the connection is then closed.
func (w *ResponseWriter) Respond(res *http.Response) error {
	defer res.Body.Close()
	w.close, w.proto = w.close || res.Close, res.ProtoMajor
	pool := &smallBuffers
	pooled := pool.Get().(*[]byte)
	defer func() { pool.Put(pooled) }()
	buf := *pooled
	if own, ok := res.Body.(Phrased); ok {
		w.phrase = own.ReasonPhrase()
	}
	head := w.head(buf[:0], res.StatusCode, res.Header, res.ContentLength)
	if w.bare || res.ContentLength == 0 {
		w.send(head)
		return w.err
	}
	if cap(head) != cap(buf) || len(head) > len(buf)/2 {
		w.send(head) // a large head is sent alone
		head = nil
	}
	pending := &w.c.pending
	pending.hold(w, head)
	defer pending.taken() // it must not write from a buffer that has returned to its pool
	for first := true; ; first = false {
		at := 0
		if first {
			at = len(head)
		}
		data := buf[at+chunkHead : len(buf)-2]
		if w.left > 0 && int64(len(data)) > w.left {
			data = data[:w.left]
		}
		n, err := res.Body.Read(data)
		if first && pending.taken() {
			at = 0
			copy(buf[chunkHead:], data[:n])
		}
		w.part(buf, at, n)
		if pool == &smallBuffers && n >= len(data)/2 { // there is more than a little
			pool.Put(pooled)
			pool = &copyBuffers
			pooled = pool.Get().(*[]byte)
			buf = *pooled
		}
		switch {
		case w.err != nil:
			return w.err
		case w.left == 0:
			return nil
		case err == io.EOF:
			w.trailer = res.Trailer
			return w.finish()
		case err != nil:
			w.err = err
			return err
		}
	}
}

// part sends buf[:at], the pending head, together with the n bytes of body at
// buf[at+chunkHead:].
func (w *ResponseWriter) part(buf []byte, at, n int) {
	if n == 0 {
		if at > 0 {
			w.send(buf[:at])
		}
		return
	}
	from := at + chunkHead
	if !w.chunked {
		if w.left > 0 {
			w.left -= int64(n)
		}
		if at > 0 {
			copy(buf[at:], buf[from:from+n])
			w.send(buf[:at+n])
		} else {
			w.send(buf[from : from+n])
		}
		return
	}
	var line [chunkHead]byte
	size := append(strconv.AppendInt(line[:0], int64(n), 16), "\r\n"...)
	gap := chunkHead - len(size) // keep head and chunk together
	if at > 0 {
		copy(buf[at+len(size):], buf[from:from+n])
		from -= gap
		copy(buf[at:], size)
		end := from + n
		copy(buf[end:], "\r\n")
		w.send(buf[:end+2])
		return
	}
	copy(buf[gap:], size)
	copy(buf[from+n:], "\r\n")
	w.send(buf[gap : from+n+2])
}

// pendingHead is a head that waits up to headWait for its body. A connection has
// one, which its responses use in turn.
type pendingHead struct {
	mu    sync.Mutex
	timer *time.Timer // nil: no response has used it
	w     *ResponseWriter
	head  []byte // nil: none waits
}

// hold makes head wait.
func (p *pendingHead) hold(w *ResponseWriter, head []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.w, p.head = w, head
	switch {
	case len(head) == 0:
	case p.timer == nil:
		p.timer = time.AfterFunc(headWait, p.flush)
	default:
		p.timer.Reset(headWait)
	}
}

func (p *pendingHead) flush() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.head) > 0 {
		p.w.send(p.head)
	}
	p.w, p.head = nil, nil
}

// taken claims the head and reports whether it had already been sent.
func (p *pendingHead) taken() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	was := len(p.head) == 0
	if !was {
		p.timer.Stop()
	}
	p.w, p.head = nil, nil
	return was
}
