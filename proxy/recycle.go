package proxy

import (
	"net/http"
	"sync"

	"github.com/ALRubinger/aileron/proxy/modify"
	"github.com/ALRubinger/aileron/proxy/scrub"
)

// exchanges recycles the memory of exchanges. The zero value is ready for use.
type exchanges struct {
	pool   sync.Pool // of *Exchange
	poison bool      // in tests: what is given back is overwritten and not used again
}

// kept is what an exchange leaves to the next one in its memory.
type kept struct {
	secrets func() *scrub.Set // the exchange's own method, bound once
	packed  modify.RejectPacked
	wait    patience

	authority Authority // whose String is hostport: most exchanges have the same one
	hostport  string
}

// address returns the exchange's authority as "host:port".
func (x *Exchange) address() string {
	if k := x.kept; k.authority != x.authority {
		k.authority, k.hostport = x.authority, x.authority.String()
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
	if e.poison || poisonAll {
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
