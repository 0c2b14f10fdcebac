// Package wire serves HTTP/1.1 to the sandbox. It parses requests strictly and
// writes every response with framing of its own.
//
// [Serve] serves one connection. It calls [Handler.ServeHTTP] for each request,
// with a [ResponseWriter] whose Respond streams a response from upstream, and
// [Handler.Refuse] with a [ProtocolError] for each request head that it rejects.
// [Limits] bounds what one connection may send.
//
// The client is hostile. A head is read raw, up to Limits.Head bytes, validated
// byte by byte, and only then parsed, as net/http would. Anything ambiguous (two
// lengths, a bare line feed, a folded line, an unknown version) is rejected and
// never repaired: every repair is a chance for two programs to interpret one
// request differently. Every rejection reaches the Handler, so that it can be
// recorded: net/http's own server answers several of them itself, and no
// handler sees them.
//
// Bodies stream in both directions, with the socket's own back-pressure. A
// client that disconnects during an exchange cancels its request's context.
package wire

// The memory that an exchange in progress takes from the session's budget.
// These are estimates of how much the process grows.
const (
	// Exchange is the cost of a request that a handler serves: the goroutines,
	// the parsed head beside its bytes, the upstream connection.
	Exchange = 12 << 10
	// Upload is what is in transit between a client and an upstream that does
	// not read: the goroutines, pieces and buffers of net/http's transport, and
	// those of TLS.
	Upload = 48 << 10
	// Ahead is the most that is read of a response before its client takes it:
	// over HTTP/1.1 a TLS record and the reader's buffer, over HTTP/2 the
	// stream's receive window, in the pieces that net/http keeps it in.
	Ahead   = 24 << 10
	AheadH2 = Window + 24<<10
	// Window is the receive window of a stream upstream.
	Window = 64 << 10
	// record is what a connection's TLS keeps once it has received a whole record.
	record = 18 << 10
)

// AheadOf returns how many bytes may be held of a response whose body has left
// bytes to go; left is -1 when the length is unknown.
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
