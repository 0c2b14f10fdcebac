// Package wire speaks HTTP/1.1 to the box: it reads requests strictly and
// writes responses plainly.
//
// The peer is hostile. A head is read raw, at most Limits.Head bytes of it,
// judged byte by byte, and only then parsed with net/http; what is in any way
// ambiguous (two lengths, a bare line feed, a folded line, a strange version)
// is refused and never repaired, because every repair is a chance for two
// programs to understand one request differently. Every refusal reaches the
// Handler, so that it can be written down: net/http's own server answers
// several of them without telling anyone.
//
// Bodies stream in both directions, with the socket's own back-pressure.
// While an exchange runs the connection is watched, so that a client that
// goes away cancels its request's context.
package wire

import "time"

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
