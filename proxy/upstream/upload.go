package upstream

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// upload is a request body on its way to the host, on a goroutine of its own: the
// response may come before it has left, and may stream beside it. It ends when
// the body does, which the client's side bounds, or with the connection.
type upload struct {
	grace time.Duration // see Options.UploadGrace
	done  chan struct{}
	err   error // valid when done is closed
}

// startUpload starts to send r with body. It does not refer to r after it has
// returned.
func (pc *persistConn) startUpload(r *http.Request, body *attemptBody) (*upload, error) {
	pooled := writeBuffers.Get().(*[]byte)
	head, err := appendRequestHead((*pooled)[:0], r, true)
	if err != nil {
		writeBuffers.Put(pooled)
		return nil, err
	}
	up := &upload{grace: pc.pool.opts.UploadGrace, done: make(chan struct{})}
	w := &uploadWriter{pc: pc, body: body, left: r.ContentLength}
	if r.ContentLength < 0 && usuallyBodiless(r.Method) {
		w.bare, _ = appendRequestHead(nil, r, false)
	}
	body.begin()
	pc.pool.uploads.start(func() {
		defer close(up.done)
		defer writeBuffers.Put(pooled)
		if up.err = w.send(*pooled, head); w.failed { // no response to half a request is of use
			_ = pc.counted.Close()
			return
		}
		// A host that did not take everything may still have responded.
		pc.startHeadTimeout()
	})
	return up, nil
}

// uploadWriter sends one request with its body.
type uploadWriter struct {
	pc     *persistConn
	body   *attemptBody
	left   int64  // of the announced length; negative: the body is chunked
	bare   []byte // the head of the request if the body turns out to be empty; nil: it is always sent
	failed bool   // it was the body that failed
}

// usuallyBodiless reports whether requests of a method usually have no body, so
// that hosts may reject one that announces a body and has none.
func usuallyBodiless(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodDelete, http.MethodOptions, "PROPFIND", "SEARCH":
		return true
	}
	return false
}

// probeWait is how long such a request waits for its body to end at once.
// net/http's transport waits as long.
const probeWait = 200 * time.Millisecond

const (
	chunkHead = 6                  // the longest size line of a chunk
	chunkTail = len(lastChunk) + 2 // what may follow the data of a chunk
	lastChunk = "0\r\n\r\n"
)

// send sends head and the body, each piece as it comes. What has come with the
// head is sent with it. buf is where the pieces are read to; head may be in it.
func (w *uploadWriter) send(buf, head []byte) error {
	probe := w.bare != nil
	if len(head) > len(buf)/2 || w.left == 0 || !probe && !w.body.ready() {
		if _, err := w.pc.conn.Write(head); err != nil {
			return err
		}
		head, probe = head[:0], false
	}
	for w.left != 0 {
		from := len(head) + chunkHead
		held := &heldHead{conn: w.pc.conn, head: head}
		if probe {
			held.timer = time.AfterFunc(probeWait, held.send)
		}
		n, end, err := w.read(buf[from:min(from+pieceSize, len(buf)-chunkTail)])
		head = held.take()
		if err != nil {
			return err
		}
		if probe && len(head) > 0 && n == 0 && end {
			_, err := w.pc.conn.Write(w.bare)
			return err
		}
		probe = false
		if _, err := w.pc.conn.Write(w.piece(buf, len(head), n, end)); err != nil {
			return err
		}
		if head = head[:0]; end {
			return nil
		}
	}
	return w.expectEnd()
}

// read reads the next piece of the body, and reports whether it was the last.
func (w *uploadWriter) read(p []byte) (n int, end bool, err error) {
	if w.left > 0 && int64(len(p)) > w.left {
		p = p[:w.left]
	}
	for n == 0 && err == nil {
		n, err = w.body.Read(p)
	}
	if w.left > 0 {
		w.left -= int64(n)
	}
	switch {
	case err == io.EOF && w.left > 0:
		err = io.ErrUnexpectedEOF
	case err == io.EOF:
		return n, true, nil
	}
	w.failed = err != nil
	return n, false, err
}

// piece returns what is sent of buf, which has a head in its first at bytes and n
// bytes of body from at+chunkHead.
func (w *uploadWriter) piece(buf []byte, at, n int, end bool) []byte {
	from := at + chunkHead
	if w.left >= 0 {
		copy(buf[chunkHead:], buf[:at])
		return buf[chunkHead : from+n]
	}
	start, last := chunkHead, from+n
	if n > 0 {
		var line [chunkHead]byte
		size := append(strconv.AppendInt(line[:0], int64(n), 16), "\r\n"...)
		start = chunkHead - len(size)
		copy(buf[from-len(size):], size)
		last += copy(buf[last:], "\r\n")
	}
	copy(buf[start:], buf[:at])
	if end {
		last += copy(buf[last:], lastChunk)
	}
	return buf[start:last]
}

// expectEnd reads the end of a body whose length was announced.
func (w *uploadWriter) expectEnd() error {
	var one [1]byte
	n, err := w.body.Read(one[:])
	if err == nil && n == 0 {
		n, err = w.body.Read(one[:])
	}
	if w.failed = n > 0 || err != io.EOF; !w.failed {
		return nil
	}
	if n > 0 || err == nil {
		return errLonger
	}
	return err
}

// errLonger is returned for a body that goes on behind its announced length.
var errLonger = errors.New("read the request body: it is longer than announced")

// heldHead is a head that waits for the first bytes of its body.
type heldHead struct {
	mu    sync.Mutex
	conn  net.Conn
	head  []byte
	timer *time.Timer // sends the head; nil: it waits without a bound
}

func (h *heldHead) send() {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, _ = h.conn.Write(h.head) // the next write fails too
	h.head = nil
}

// take returns the head, or nothing when it has been sent.
func (h *heldHead) take() []byte {
	if h.timer != nil {
		h.timer.Stop()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	head := h.head
	h.head = nil
	return head
}

// complete reports whether the whole request has left. A response that came long
// before that is delivered, and the upload ends with its connection.
func (up *upload) complete() bool {
	if up == nil {
		return true
	}
	late := time.NewTimer(up.grace)
	defer late.Stop()
	select {
	case <-up.done:
	case <-late.C: // on a busy machine both may be due
		select {
		case <-up.done:
		default:
			return false
		}
	}
	return up.err == nil
}
