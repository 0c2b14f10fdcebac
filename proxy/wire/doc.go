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
