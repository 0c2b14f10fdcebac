package proxy

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/ALRubinger/aileron/spec"
)

// countingBody counts a request body's bytes while the transport reads it.
type countingBody struct {
	io.ReadCloser
	n atomic.Int64
}

func (b *countingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.n.Add(int64(n))
	return n, err
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
