package wire

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/ALRubinger/aileron/proxy/budget"
)

// Handler answers the exchanges of one connection. Its methods are called
// one at a time for a connection, and at the same time for several.
type Handler interface {
	// ServeHTTP answers one request. w is a *ResponseWriter; r's context
	// ends when the client goes away, and not when it ends its outbound half.
	ServeHTTP(w http.ResponseWriter, r *http.Request)
	// Refuse gives the answer to a refused head. The connection ends with it.
	Refuse(f *Fault) *http.Response
}

// Options is what Serve needs beside a connection. The zero value works.
type Options struct {
	Limits Limits
	// Drain, when done, ends the connection once it has been idle for four
	// seconds since. A request that comes before is answered and told that it
	// was the last (RFC 9112 section 9.6): a client cannot know whether one that
	// was never answered was served. nil: never.
	Drain context.Context //nolint:containedctx // longer than any one connection
	// Once ends the connection after one exchange.
	Once bool
	// Log gets where a panic came from that ends a stream; nil discards.
	Log *slog.Logger
	// Budget bounds what the connection holds; nil: nothing does.
	Budget *budget.Budget
}

// Limits bounds what one connection may ask for. The zero value of a field
// means its default.
type Limits struct {
	Head    int           // bytes of one request head; default 64 KiB
	Fields  int           // header fields of one request; default 200
	Target  int           // bytes of one request target; default 16 KiB
	Header  time.Duration // from a head's first byte to its last; default 10 s
	Idle    time.Duration // between two requests; default 60 s
	Body    int64         // bytes of one request body; default 1 GiB
	Stalled time.Duration // for one write to be taken by the client; default 2 min

	// Progress is the time in which a request body must bring another
	// Progressing bytes, or its end; default 30 s. It holds for HTTP/1.1 and
	// for bodies of an announced length: an HTTP/2 stream without one may be a
	// conversation.
	Progress time.Duration
}

// WithDefaults fills the zero fields.
func (l Limits) WithDefaults() Limits {
	set := func(v *int, def int) {
		if *v == 0 {
			*v = def
		}
	}
	span := func(v *time.Duration, def time.Duration) {
		if *v == 0 {
			*v = def
		}
	}
	set(&l.Head, 64<<10)
	set(&l.Fields, 200)
	set(&l.Target, 16<<10)
	if l.Body == 0 {
		l.Body = 1 << 30
	}
	span(&l.Header, 10*time.Second)
	span(&l.Idle, 60*time.Second)
	span(&l.Stalled, 2*time.Minute)
	span(&l.Progress, 30*time.Second)
	return l
}
