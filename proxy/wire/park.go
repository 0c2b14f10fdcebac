package wire

import (
	"context"
	"net/http"

	"github.com/ALRubinger/aileron/proxy/budget"
)

type headKey struct{}

// headHold is what a request's head takes of its hold.
type headHold struct {
	hold *budget.Hold
	n    int64
}

// WithHead returns the context of a request whose head takes n bytes of hold,
// for [Park].
func WithHead(ctx context.Context, hold *budget.Hold, n int64) context.Context {
	return context.WithValue(ctx, headKey{}, headHold{hold, n})
}

// Park returns what r's head took of the session's budget, and lets the exchange
// make room for others from now on: its context ends then. A handler calls it
// once, before it waits without referring to anything of the head.
func Park(r *http.Request) {
	if h, ok := r.Context().Value(headKey{}).(headHold); ok {
		h.hold.Give(h.n)
		h.hold.Stall(0)
	}
}
