package upstream

// Kind is why a request got no response. The zero value is Broken.
type Kind int

// The kinds of errors. What each means to a client is up to the caller.
const (
	Broken           Kind = iota // the connection broke before a response came
	Reset                        // the connection or the stream was reset before a response came
	Closed                       // the connection ended before the head of a response had
	AddressDenied                // the name leads to no public address; Detail is the class of the last one
	NameNotResolved              // the name cannot be resolved
	Unreachable                  // no connection could be made
	NoDescriptor                 // the process has no file descriptor left for a connection
	NotTLS                       // the host does not speak TLS
	NotVerified                  // the host's certificates are not trusted for its name, or TLS is too old or weak
	Timeout                      // no response came in time
	Stalled                      // the host does not take the request's body
	NotHTTP                      // what came does not begin as a response of HTTP/1
	NotHTTP2                     // what came is no HTTP/2, which the host had agreed to
	HeadMalformed                // the response's head can be read in two ways; Detail names the rule
	HeadTooLarge                 // the response's head has no end
	HeadTooSlow                  // the response's head began and did not end in time
	FramingLookalike             // a field's name can be taken for that of a framing or coding field
	InvalidStatus                // the response's status is none of HTTP
	RequestBody                  // the request's body could not be read; Err is why
	Canceled                     // the request's context ended
)

// kindNames is the table of all kinds.
var kindNames = [...]string{
	Broken:           "the connection broke before a response",
	Reset:            "the connection or the stream was reset before a response",
	Closed:           "the connection was closed before the end of a response's head",
	AddressDenied:    "no address may be reached",
	NameNotResolved:  "the name cannot be resolved",
	Unreachable:      "no connection could be made",
	NoDescriptor:     "the process has no file descriptor left",
	NotTLS:           "the host does not speak TLS",
	NotVerified:      "the host could not be verified",
	Timeout:          "no response came in time",
	Stalled:          "the host does not take the request's body",
	NotHTTP:          "the response is none of HTTP",
	NotHTTP2:         "the response is none of HTTP/2",
	HeadMalformed:    "the head of the response",
	HeadTooLarge:     "the head of the response",
	HeadTooSlow:      "the head of the response did not end in time",
	FramingLookalike: "a field's name can be taken for one of framing or coding",
	InvalidStatus:    "the response's status does not exist",
	RequestBody:      "the request body could not be read",
	Canceled:         "the request was canceled",
}

// String returns a description of k.
func (k Kind) String() string { return kindNames[k] }

// Error is returned for a request that got no response, and for a connection
// that could not be made. It quotes nothing of the errors below it, which name
// URLs, addresses and header fields.
type Error struct {
	Kind   Kind
	Host   string // "host:port", as the request has it
	Detail string // of AddressDenied, HeadMalformed and HeadTooLarge; no byte of what the host sent
	Sent   bool   // bytes of the request may have reached the host
	Err    error  // of RequestBody; nil for every other kind
}

// Error implements error.
func (e *Error) Error() string {
	text := "upstream " + e.Host + ": " + e.Kind.String()
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return text
}

// Unwrap returns e.Err.
func (e *Error) Unwrap() error { return e.Err }

// mayRepeat reports whether a request may be sent again whose connection failed
// with k, as far as k goes.
func (k Kind) mayRepeat() bool {
	return k == Broken || k == Reset || k == Closed || k == HeadMalformed
}
