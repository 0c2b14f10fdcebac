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

// What an exchange costs while it is under way, as its hold in the session's
// budget has it. They are estimates of what the process grows by.
const (
	// Exchange is a request in a handler's hands: the goroutines, the parsed
	// head beside its bytes, the connection upstream.
	Exchange = 12 << 10
	// Upload is what is on its way between a client and an upstream that does
	// not read: the goroutines, pieces and buffers of net/http's transport, and
	// those of TLS.
	Upload = 48 << 10
	// Ahead is what comes of an answer before its client takes it, at most:
	// over HTTP/1.1 a TLS record and the reader's buffer, over HTTP/2 the
	// stream's receive window, in the pieces that net/http keeps it in.
	Ahead   = 24 << 10
	AheadH2 = Window + 24<<10
	// Window is the receive window of a stream upstream.
	Window = 64 << 10
	// record is what a connection's TLS keeps once a whole record has come.
	record = 18 << 10
)

// AheadOf returns what may be held of an answer whose body has left bytes to
// come, -1 when that is not known.
func AheadOf(protoMajor int, left int64) int64 {
	most := int64(Ahead)
	if protoMajor == 2 {
		most = AheadH2
	}
	if left >= 0 && left < most {
		return left
	}
	return most
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
