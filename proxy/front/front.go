// Package front is what stands between the clients of a listener and the plane: it accepts connections, answers
// CONNECT, terminates the client's TLS, and hands each request to [proxy.Plane.Do], or to the session's API.
//
// [New] puts a front before a plane, and [Front.Serve] serves a listener:
//
//	plane, err := proxy.New(config)
//	if err != nil {
//		return err
//	}
//	err = front.New(plane).Serve(ctx, listener, front.Listener{Sealed: true})
//
// A connection takes a seat (accept.go), where there is one, and its requests are dispatched in handler.go: CONNECT,
// absolute form, API, models (model.go). What follows a CONNECT is in tunnel.go, its TLS in clienttls.go; ciphertext.go
// bounds what a client may send below TLS. The tunnel to a host of [proxy.Config].TLSPassthrough is spliced
// (tlspassthrough.go).
package front

import (
	"sync"
	"sync/atomic"

	"golang.org/x/time/rate"

	"github.com/ALRubinger/aileron/internal/panics"
	"github.com/ALRubinger/aileron/proxy"
	"github.com/ALRubinger/aileron/proxy/api"
	"github.com/ALRubinger/aileron/proxy/budget"
	"github.com/ALRubinger/aileron/proxy/internal/summary"
)

// Front serves the clients of one plane. All its methods are safe for concurrent
// use.
type Front struct {
	plane   *proxy.Plane
	cfg     *proxy.Config // the plane's
	api     *api.API
	tls     *clientTLS
	ahead   *readAhead
	workers workers
	firsts  firsts
	slots   chan struct{} // connections
	lobby   lobby         // connections over a limit, which are denied
	files   *budget.Descriptors
	serving atomic.Int32  // calls of Serve
	rate    *rate.Limiter // of requests

	silenceRate *rate.Limiter // of rows for connections without a request
	silent      summary.Summary[silences]
	unasked     summary.Summary[int] // connections to the listener itself without a request

	outsideCA sync.Once // for the log's line about a clock outside the lifetime of the CA
}

// New returns the front of a plane. A plane has but one.
func New(plane *proxy.Plane) *Front {
	cfg, files := plane.Config(), plane.Descriptors()
	return &Front{
		plane: plane, cfg: cfg, api: api.New(plane), tls: newClientTLS(), ahead: newReadAhead(plane.Budget()),
		slots: make(chan struct{}, cfg.Limits.Connections), files: files,
		lobby:       lobby{places: make(chan struct{}, files.Lobby())},
		rate:        rate.NewLimiter(rate.Limit(cfg.Limits.Rate), cfg.Limits.Rate),
		silenceRate: rate.NewLimiter(silencesPerSecond, silencesAtOnce),
	}
}

// recovered keeps a bug in one exchange from ending the session.
func (f *Front) recovered(where string) {
	if recover() != nil {
		panics.Log(f.cfg.Log, where)
	}
}

// denyRate returns the denial of a request beyond those of a second.
func (f *Front) denyRate() *proxy.Denial {
	return proxy.ReasonRate.Deny("the session takes %d requests a second at most", f.cfg.Limits.Rate)
}
