package wire

import (
	"context"
	"net/http"

	"github.com/ALRubinger/aileron/proxy/budget"
)

type headKey struct{}

// Head is what the head of the request in progress takes of a hold.
type Head struct {
	Hold *budget.Hold
	Size int64
}

// WithHead returns the context of requests whose heads take what h states, for
// [Park]. The requests of one context are served one at a time.
func WithHead(ctx context.Context, h *Head) context.Context {
	return context.WithValue(ctx, headKey{}, h)
}

// Park returns to the session's budget what r's head took of it, and allows the
// exchange to be shed for others from now on, which cancels its context. A handler
// calls it once, before a wait during which it does not refer to the head.
func Park(r *http.Request) {
	if h, ok := r.Context().Value(headKey{}).(*Head); ok {
		h.Hold.Give(h.Size)
		h.Hold.Stall(0)
	}
}

// HoldFor returns a new hold of the connection by which r came, as [budget.Conn.Hold] does. It is nil, which has no
// bound, if the connection has none.
func HoldFor(r *http.Request, shed func()) *budget.Hold {
	if h, ok := r.Context().Value(headKey{}).(*Head); ok {
		return h.Hold.Beside(shed)
	}
	return nil
}
