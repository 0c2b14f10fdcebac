package wire

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/ALRubinger/aileron/proxy/budget"
)

// Handler serves the requests of connections. Its methods are called one at a
// time for a connection, and concurrently for several.
type Handler interface {
	// ServeHTTP serves one request. w is a *ResponseWriter; r and its header are
	// the handler's to change. r's context is the connection's: it is canceled
	// when the client disconnects, but not when it only half-closes, nor when
	// ServeHTTP returns.
	ServeHTTP(w http.ResponseWriter, r *http.Request)
	// Refuse returns the response to a rejected head; nil: none is sent. The
	// connection is closed after it.
	Refuse(f *ProtocolError) *http.Response
}

// Options configures [Serve]. The zero value works.
type Options struct {
	Limits Limits
	// Drain, when done, closes the connection once it has been idle for another
	// four seconds. A request that arrives before that is served with
	// Connection: close (RFC 9112 section 9.6): a client cannot know whether a
	// request without a response was served. nil: never.
	Drain context.Context //nolint:containedctx // longer than any one connection
	// Once closes the connection after one exchange.
	Once bool
	// Log receives the origin of a panic that ends a stream; nil discards it.
	Log *slog.Logger
	// Go runs a function on a goroutine of its own, perhaps one that is kept and has
	// a stack that has grown. nil: a new one.
	Go func(f func())
	// Budget bounds the memory that the connection holds; nil: no bound.
	Budget *budget.Budget
}

// Limits bounds what one connection may send. The zero value of a field means
// its default.
type Limits struct {
	Head    int           // bytes of one request head; default 64 KiB
	Fields  int           // header fields of one request; default 200
	Target  int           // bytes of one request target; default 16 KiB
	Header  time.Duration // from a head's first byte to its last; default 60 s
	Idle    time.Duration // between two requests; default 60 s
	Body    int64         // bytes of one request body; default 1 GiB
	Stalled time.Duration // for the client to take one write; default 2 min

	// Progress is the time within which a request body must deliver another
	// MinProgress bytes, or its end; default 30 s. It applies to bodies with a
	// Content-Length.
	Progress time.Duration
	// Pause is the same for a body without a Content-Length, whose sender may be
	// making it; default 10 min. Streams of gRPC and Connect may be bidirectional,
	// and have no such time.
	Pause time.Duration
}

// WithDefaults returns l with its zero fields set to their defaults.
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
	span(&l.Header, 60*time.Second)
	span(&l.Idle, 60*time.Second)
	span(&l.Stalled, 2*time.Minute)
	span(&l.Progress, 30*time.Second)
	span(&l.Pause, 10*time.Minute)
	return l
}
