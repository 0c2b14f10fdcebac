package upstream

import (
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// upload is a request body on its way upstream, on a goroutine of its own: the
// response may come before it has left, and may stream beside it. It ends when
// the body does, which the client's side bounds, or with the connection.
type upload struct {
	done chan struct{}
	err  error // valid when done is closed
}

// upload starts to send r.
func (c *laneConn) upload(r *http.Request) *upload {
	up := &upload{done: make(chan struct{})}
	body := &uploadBody{ReadCloser: r.Body}
	out := r.WithContext(r.Context())
	out.Body = body
	go func() {
		defer close(up.done)
		if up.err = out.Write(c.w); up.err == nil {
			up.err = c.w.Flush()
		}
		if body.failed { // no response to half a request is of use
			_ = c.counted.Close()
			return
		}
		// A host that did not take everything may still have responded.
		c.waitForHead(r)
	}()
	return up
}

// waitForHead sets the deadline of the response's head, now that the request
// has left.
func (c *laneConn) waitForHead(r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.head {
		return
	}
	_ = c.conn.SetReadDeadline(time.Now().Add(c.lane.cfg.ResponseHeader))
	if r.Context().Err() != nil { // whose deadline that must not undo
		_ = c.conn.SetReadDeadline(longAgo)
	}
}

// uploadGrace is how long a complete response waits for the end of its
// request. net/http's transport takes as long.
const uploadGrace = 50 * time.Millisecond

// complete reports whether the whole request has left. A response that came
// long before that is delivered, and the upload ends with its connection.
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

// uploadBody notes whether it was the body that broke off.
type uploadBody struct {
	io.ReadCloser
	failed bool
}

func (b *uploadBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.failed = b.failed || err != nil && err != io.EOF
	return n, err
}

// piecewise sends each piece of a body as it comes, where a bufio.Writer would
// wait until it is full.
type piecewise struct{ net.Conn }

// ReadFrom implements io.ReaderFrom.
func (p piecewise) ReadFrom(r io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{p.Conn}, r)
}

// laneBody is a response's body. It holds its connection until it ends.
type laneBody struct {
	io.ReadCloser
	c        *laneConn
	sent     *upload
	stop     func() bool // ends the watch over the request's context
	reuse    bool
	err      error // sticky
	released atomic.Bool
}

func (b *laneBody) Read(p []byte) (int, error) {
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
func (b *laneBody) Close() error {
	b.release(false)
	return nil
}

func (b *laneBody) release(reuse bool) {
	if b.released.Swap(true) {
		return
	}
	reuse = reuse && b.sent.complete()
	// Bytes behind the response belong to no request.
	if b.stop() && reuse && b.c.r.Buffered() == 0 && b.c.r.Size() <= largeBuffer {
		b.c.lane.put(b.c)
		return
	}
	_ = b.c.conn.Close()
}
