package proxy

import (
	"errors"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ALRubinger/aileron/proxy/budget"
	"github.com/ALRubinger/aileron/proxy/wire"
	"github.com/ALRubinger/aileron/spec"
)

// countingBody counts a request body's bytes while a transport reads it. Each
// attempt to send it reads by an attemptBody of its own: the transport of an
// attempt that failed may still wait for the next piece, and what it then gets
// is the next attempt's.
type countingBody struct {
	io.ReadCloser
	n    atomic.Int64          // bytes that an attempt took
	fail atomic.Pointer[error] // why it broke off; nil: it did not

	mu   sync.Mutex // one reads at a time
	left []byte     // what came for an attempt that was over
	err  error      // how it ended
}

// attempt is a body whose reader must come back for more within span, or
// stuck is called: the upstream does not take what was read.
func (b *countingBody) attempt(span time.Duration, stuck func()) *attemptBody {
	a := &attemptBody{b: b, span: span, watch: time.AfterFunc(span, stuck)}
	a.watch.Stop()
	return a
}

// attemptBody is the body for one attempt. Closing it ends the attempt's
// reading, and not the body.
type attemptBody struct {
	b     *countingBody
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
	n, err := b.ReadCloser.Read(p)
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

// denial says that it was the client's body that broke the exchange; nil
// when it was not.
func (b *countingBody) denial() *Denial {
	if b == nil {
		return nil
	}
	fail := b.fail.Load()
	switch {
	case fail == nil:
		return nil
	case errors.Is(*fail, wire.ErrBodyTooLarge):
		return deny(reasonTooLarge, "the request body is too large")
	case errors.Is(*fail, wire.ErrBodyStalled):
		return deny(reasonSlow, "the request body came too slowly")
	case errors.Is(*fail, budget.ErrShed):
		return exhausted()
	}
	return deny(reasonClientBody, "the request body broke off or its framing is broken")
}

// denyNoMatch says a spec's refusal as ours.
func denyNoMatch(no *spec.NoMatch) *Denial {
	return &Denial{Reason: no.Reason, Message: strings.TrimSuffix(no.Error(), "."), Requested: no.Requested, Granted: no.Granted}
}
