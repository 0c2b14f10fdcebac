package proxy

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/ALRubinger/aileron/proxy/fair"
	"github.com/ALRubinger/aileron/proxy/modify"
	"github.com/ALRubinger/aileron/proxy/scrub"
)

// exchanges recycles the memory of exchanges. The zero value is ready for use.
type exchanges struct {
	pool   sync.Pool // of *Exchange
	poison bool      // see Config.Poison
}

// kept is what an exchange leaves to the next one in its memory.
type kept struct {
	secrets func() *scrub.Set // the exchange's own method, bound once
	packed  modify.RejectPacked
	wait    patience
	turns   fair.Stream // of the response's body

	authority Authority // whose String is hostport: most exchanges have the same one
	hostport  string
}

// address returns the exchange's authority as "host:port".
func (x *Exchange) address() string {
	if k := x.kept; k.authority != x.at.Authority {
		k.authority, k.hostport = x.at.Authority, x.at.Authority.String()
	}
	return x.hostport
}

// take returns the memory for an exchange.
func (e *exchanges) take() *Exchange {
	if x, ok := e.pool.Get().(*Exchange); ok {
		return x
	}
	x := &Exchange{kept: &kept{}}
	x.kept.secrets = x.secrets
	return x
}

// give takes back an exchange that has ended. Nothing may refer to it any more.
func (e *exchanges) give(x *Exchange) {
	k := x.kept
	k.packed.Reset()
	*x = Exchange{kept: k}
	if e.poison {
		*x, *k = Exchange{}, kept{} // a late use of it is a panic, and a data race
		return
	}
	e.pool.Put(x)
}

// endsWithBody reports whether an exchange has certainly ended when the body of res,
// its response, is closed. A relay refers to its exchange for longer than that; an
// upload that goes on does not, as it refers to the request's body alone (see
// [upstream.Client.RoundTrip]).
func endsWithBody(res *http.Response) bool { return res.StatusCode != http.StatusSwitchingProtocols }

// patience is a context that ends after a time, for one wait at a time. Its timer
// runs only while something waits for it, and serves every wait: most rows are
// recorded without any.
type patience struct {
	until time.Time

	mu    sync.Mutex
	timer *time.Timer   // closes done; nil: nothing has waited yet
	done  chan struct{} // of the timer
	runs  bool          // the timer does, for this wait
}

var _ context.Context = (*patience)(nil)

// begin begins a wait. It must be followed by end.
func (p *patience) begin(span time.Duration) context.Context {
	p.until = time.Now().Add(span)
	return p
}

// end ends the wait. Nothing may use its context any more.
func (p *patience) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.runs && !p.timer.Stop() {
		p.timer, p.done = nil, nil // it has fired, or is about to
	}
	p.runs = false
}

// Deadline implements context.Context.
func (p *patience) Deadline() (time.Time, bool) { return p.until, true }

// Done implements context.Context. It starts the timer.
func (p *patience) Done() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch left := time.Until(p.until); {
	case p.runs:
	case p.timer == nil:
		done := make(chan struct{})
		p.done, p.timer = done, time.AfterFunc(left, func() { close(done) })
	default:
		p.timer.Reset(left)
	}
	p.runs = true
	return p.done
}

// Err implements context.Context.
func (p *patience) Err() error {
	if time.Now().Before(p.until) {
		return nil
	}
	return context.DeadlineExceeded
}

// Value implements context.Context: there is none.
func (p *patience) Value(any) any { return nil }
