package upstream

import (
	"net/netip"
	"strings"
)

// Kind is why a request got no response. The zero value is Broken.
type Kind int

// The kinds of errors. What each means to a client is up to the caller.
const (
	Broken Kind = iota
	Reset
	Closed
	AddressDenied   // Detail is the class of the last address
	NameNotResolved // no name server gave an answer
	NameNotFound    // they say that there is no such name
	Unreachable
	OutOfDescriptors
	NotTLS
	NotVerified           // Detail is what is wrong
	UntrustedAuthority    // of its certificates
	CertificateUnreadable // Detail is why
	ClientCertificate     // the host demands one
	HandshakeRefused      // Detail is the host's alert
	HandshakeFailed       // the host says that the fault is its own
	ProxyRefused          // Detail is the proxy's response: the same request gets it again
	ProxyFailed           // the same, where another attempt may succeed
	Timeout
	BodyStalled
	NotHTTP       // Detail is the rule of the head that is broken
	HeadMalformed // the same
	HeadTooLarge  // the same
	HeadTooSlow
	NotHTTP2
	FramingLookalike // such as "Content-Length " or Content_Encoding: a smuggled length
	InvalidStatus
	RequestBody // Err is the error of the body's Read
	Unprocessed // the host said so: the request has had no effect
	Canceled    // by the request's context
)

// Kinds is how many kinds there are.
const Kinds = Canceled + 1

// kindTexts is the table of the kinds.
var kindTexts = [Kinds]string{
	Broken:           "the connection broke before a response came",
	Reset:            "the connection or the stream was reset before a response came",
	Closed:           "the connection was closed before the head of a response had ended",
	AddressDenied:    "the name leads to no address that may be reached",
	NameNotResolved:  "the name cannot be resolved",
	NameNotFound:     "the name does not exist",
	Unreachable:      "no connection could be made",
	OutOfDescriptors: "the process has no file descriptor left for a connection",
	NotTLS:           "the host does not speak TLS",
	NotVerified:      "the host's certificates are not trusted for its name or too weak, or its TLS is too old",

	UntrustedAuthority:    "the host's certificates are of an authority that is not trusted",
	CertificateUnreadable: "the host's certificate cannot be parsed",
	ClientCertificate:     "the host demands a certificate of its client",
	HandshakeRefused:      "the host ended the TLS handshake",
	HandshakeFailed:       "the host failed in the TLS handshake",
	ProxyRefused:          "the upstream proxy refused the tunnel",
	ProxyFailed:           "the upstream proxy failed to make the tunnel",

	Timeout:          "no response came in time",
	BodyStalled:      "the host does not take the request's body",
	NotHTTP:          "the response is not HTTP/1",
	HeadMalformed:    "the head of the response can be read in two ways",
	HeadTooLarge:     "the head of the response has no end",
	HeadTooSlow:      "the head of the response did not end in time",
	NotHTTP2:         "the response is not HTTP/2, on which host and client agreed",
	FramingLookalike: "the response has a field whose name can be taken for one of framing or coding",
	InvalidStatus:    "the response has a status that does not exist",
	RequestBody:      "the request's body could not be read",
	Unprocessed:      "the host did not process the request",
	Canceled:         "the request was canceled",
}

// String returns a sentence about k.
func (k Kind) String() string { return kindTexts[k] }

// isBrokenConn reports whether the connection failed, so that a request which did
// not arrive may be sent on another.
func (k Kind) isBrokenConn() bool {
	return k == Broken || k == Reset || k == Closed || k == HeadMalformed
}

// Error is returned for a request that got no response, and for a connection that
// could not be made. Its text quotes nothing of the errors below it: those name
// URLs, addresses and header fields.
type Error struct {
	Kind   Kind
	Host   string // "host:port"
	Detail string // more about some kinds; no byte of what the host sent
	Sent   bool   // bytes of the request may have arrived
	Unused string // Options.UnusedProxy, where the host was not reached at all; "": it was, or none is unused
	// Proxy is the host and port of the upstream proxy, where it made no tunnel. It is for the user: a sandbox must not
	// learn it.
	Proxy string
	// Range is the block from which the resolver answers every name, where the address is denied for it; else it is not
	// valid. The user may allow it: Options.Ranges.
	Range netip.Prefix
	Err   error // of RequestBody; nil for every other kind
}

// Error implements error.
func (e *Error) Error() string {
	text := "reach " + e.Host + ": " + e.Kind.String()
	if detail := strings.TrimSpace(e.Proxy + " " + e.Detail); detail != "" {
		text += " (" + detail + ")"
	}
	return text
}

// Unwrap returns e.Err.
func (e *Error) Unwrap() error { return e.Err }
