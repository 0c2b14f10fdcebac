package upstream

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// Body counts a request body's bytes while a transport reads it. Each
// attempt to send it reads by an attemptBody of its own: the transport of an
// attempt that failed may still wait for the next piece, and what it then gets
// is the next attempt's.
type Body struct {
	src  io.ReadCloser
	n    atomic.Int64          // bytes that an attempt took
	fail atomic.Pointer[error] // why it broke off; nil: it did not

	mu   sync.Mutex // one reads at a time
	left []byte     // what came for an attempt that was over
	err  error      // how it ended
}

// NewBody returns a body that reads src.
func NewBody(src io.ReadCloser) *Body { return &Body{src: src} }

// Read implements io.Reader.
func (b *Body) Read(p []byte) (int, error) { return b.src.Read(p) }

// Close implements io.Closer.
func (b *Body) Close() error { return b.src.Close() }

// attempt is a body whose reader must come back for more within span, or
// stuck is called: the upstream does not take what was read.
func (b *Body) attempt(span time.Duration, stuck func()) *attemptBody {
	a := &attemptBody{b: b, span: span, watch: time.AfterFunc(span, stuck)}
	a.watch.Stop()
	return a
}

// attemptBody is the body for one attempt. Closing it ends the attempt's
// reading, and not the body.
type attemptBody struct {
	b     *Body
	over  atomic.Bool
	span  time.Duration
	watch *time.Timer
}

var errAttemptOver = errors.New("read the request body: the attempt to send it is over")

func (a *attemptBody) Read(p []byte) (n int, err error) {
	a.watch.Stop()
	defer func() {
		if err == nil {
			a.watch.Reset(a.span)
		}
	}()
	return a.read(p)
}

func (a *attemptBody) read(p []byte) (int, error) {
	b := a.b
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case a.over.Load():
		return 0, errAttemptOver
	case len(b.left) > 0:
		n := copy(p, b.left)
		b.left = b.left[n:]
		b.n.Add(int64(n))
		return n, nil
	case b.err != nil:
		return 0, b.err
	}
	n, err := b.src.Read(p)
	if b.err = err; err != nil && err != io.EOF {
		b.fail.Store(&err)
	}
	if a.over.Load() {
		b.left = append(b.left, p[:n]...)
		return 0, errAttemptOver
	}
	b.n.Add(int64(n))
	return n, err
}

func (a *attemptBody) Close() error {
	a.over.Store(true)
	a.watch.Stop()
	return nil
}

// Ended reports whether the body has been read to its end, or failed. While it
// is being read it has not.
func (b *Body) Ended() bool {
	if !b.mu.TryLock() {
		return false
	}
	defer b.mu.Unlock()
	return b.err != nil
}

// failure returns why the client's body could not be read; nil: it could.
func (b *Body) failure() error {
	if b == nil {
		return nil
	}
	if fail := b.fail.Load(); fail != nil {
		return *fail
	}
	return nil
}

// Sent returns how many bytes of the body an attempt took.
func (b *Body) Sent() int64 {
	if b == nil {
		return 0
	}
	return b.n.Load()
}
