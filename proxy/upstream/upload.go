package upstream

import (
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// upload is a request body on its way to the host, on a goroutine of its own: the
// response may come before it has left, and may stream beside it. It ends when
// the body does, which the client's side bounds, or with the connection.
type upload struct {
	done chan struct{}
	err  error // valid when done is closed
}

// startUpload starts to send r.
func (pc *persistConn) startUpload(r *http.Request) *upload {
	up := &upload{done: make(chan struct{})}
	body := &uploadBody{ReadCloser: r.Body}
	out := r.WithContext(r.Context())
	out.Body = body
	if b, ok := r.Body.(*attemptBody); ok {
		b.begin()
	}
	pc.pool.uploads.start(func() {
		defer close(up.done)
		if up.err = out.Write(pc.w); up.err == nil {
			up.err = pc.w.Flush()
		}
		if body.failed { // no response to half a request is of use
			_ = pc.counted.Close()
			return
		}
		// A host that did not take everything may still have responded.
		pc.startHeadTimeout(r)
	})
	return up
}

// startHeadTimeout sets the deadline of the response's head, now that the request
// has left.
func (pc *persistConn) startHeadTimeout(r *http.Request) {
	pc.mu.Lock()
	defer pc.mu.Unlock()
	if pc.gotHead {
		return
	}
	_ = pc.conn.SetReadDeadline(time.Now().Add(pc.pool.opts.ResponseHeader))
	if r.Context().Err() != nil { // whose deadline that must not undo
		_ = pc.conn.SetReadDeadline(aLongTimeAgo)
	}
}

// uploadGrace is how long a complete response waits for the end of its request.
// net/http's transport takes as long.
const uploadGrace = 50 * time.Millisecond

// complete reports whether the whole request has left. A response that came long
// before that is delivered, and the upload ends with its connection.
func (up *upload) complete() bool {
	if up == nil {
		return true
	}
	late := time.NewTimer(uploadGrace)
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

// uploadBody records whether it was the body that failed.
type uploadBody struct {
	io.ReadCloser
	failed bool
}

// Read implements io.Reader.
func (b *uploadBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.failed = b.failed || err != nil && err != io.EOF
	return n, err
}

// h1Body is the body of a response over HTTP/1.1. It holds its connection until
// it ends.
type h1Body struct {
	io.ReadCloser
	pc       *persistConn
	sent     *upload
	stop     func() bool // ends the watch over the request's context
	reuse    bool
	err      error // sticky
	released atomic.Bool
}

// Read implements io.Reader.
func (b *h1Body) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	if b.released.Load() {
		return 0, http.ErrBodyReadAfterClose
	}
	n, err := b.ReadCloser.Read(p)
	if b.err = err; err != nil {
		b.release(err == io.EOF && b.reuse)
	}
	return n, err
}

// Close ends the connection of a body that was not read to its end.
func (b *h1Body) Close() error {
	b.release(false)
	return nil
}

func (b *h1Body) release(reuse bool) {
	if b.released.Swap(true) {
		return
	}
	reuse = reuse && b.sent.complete()
	// Bytes behind the response belong to no request.
	if b.stop() && reuse && b.pc.r.Buffered() == 0 && b.pc.r.Size() <= maxConnBuffer {
		b.pc.pool.put(b.pc)
		return
	}
	_ = b.pc.conn.Close()
}
