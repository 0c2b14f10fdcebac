package proxy

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/ALRubinger/aileron/proxy/wire"
	"github.com/ALRubinger/aileron/spec"
)

// countingBody counts a request body's bytes while the transport reads it.
type countingBody struct {
	io.ReadCloser
	n    atomic.Int64
	fail atomic.Pointer[error] // why it broke off; nil: it did not
}

func (b *countingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.n.Add(int64(n))
	if err != nil && err != io.EOF {
		b.fail.Store(&err)
	}
	return n, err
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
	}
	return deny(reasonClientBody, "the request body broke off or its framing is broken")
}

// denyNoMatch says a spec's refusal as ours.
func denyNoMatch(no *spec.NoMatch) *Denial {
	return &Denial{Reason: no.Reason, Message: strings.TrimSuffix(no.Error(), "."), Requested: no.Requested, Granted: no.Granted}
}

// hasToken reports whether a comma-separated field lists token.
func hasToken(h http.Header, name, token string) bool {
	for _, line := range h[name] {
		for part := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(strings.TrimSpace(part), token) {
				return true
			}
		}
	}
	return false
}
