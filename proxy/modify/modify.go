// Package modify holds the steps that change an exchange's request on its way
// upstream and its response on its way back. Each is a modifier of its own, in
// martian's words, whose comment states its effect:
//
//	err := modify.StripHopByHop{}.ModifyRequest(req)
//
// A modifier holds only what it needs, passed to it as values. It does not
// decide whether it applies: the proxy's lists do. One that cannot do its work,
// or that finds a response in which a credential could hide, returns an
// [*Error], and the exchange ends there.
//
// A modifier is called as the type that it is and not through an interface,
// which would allocate it. Those that keep something for the length of an
// exchange ([RejectPacked], [Redactions]) are part of the exchange.
package modify

import "fmt"

// Kind is why a modifier failed.
type Kind int

// The kinds of an [Error].
const (
	QueryMalformed     Kind = iota + 1 // the query cannot be read
	NoPlace                            // the credential has no place in the request
	ContentCoding                      // the response is compressed
	Charset                            // the response is in a character set that is not searched
	PartialContent                     // the response is a part that was not asked for
	AmbiguousFieldName                 // a field's name can be taken for one of framing or coding
	Packed                             // the body is packed
	Switch                             // the switch of protocols is not the one that was asked for
)

// Error is the failure of a modifier. Its message holds no byte of a
// credential, a query or a field's value.
type Error struct {
	Kind    Kind
	Message string
}

func (e *Error) Error() string { return e.Message }

func fail(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...)}
}
