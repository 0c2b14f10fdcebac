package wire

import (
	"context"
	"net/http"

	"github.com/ALRubinger/aileron/proxy/budget"
)

type headKey struct{}

// headHold is how many bytes of a hold a request's head takes.
type headHold struct {
	hold *budget.Hold
	n    int64
}

// WithHead returns the context of a request whose head takes n bytes of hold,
// for [Park].
func WithHead(ctx context.Context, hold *budget.Hold, n int64) context.Context {
	return context.WithValue(ctx, headKey{}, headHold{hold, n})
}

// Park returns to the session's budget what r's head took of it, and allows the
// exchange to be shed for others from now on, which cancels its context. A handler
// calls it once, before a wait during which it does not refer to the head.
func Park(r *http.Request) {
	if h, ok := r.Context().Value(headKey{}).(headHold); ok {
		h.hold.Give(h.n)
		h.hold.Stall(0)
	}
}
