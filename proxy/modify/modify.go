// Package modify holds the steps that change an exchange's request on its way
// upstream and its response on its way back. Each is a modifier of its own, in
// martian's words, whose comment states its effect. [Requests] and [Responses]
// are lists of them, applied in order:
//
//	steps := modify.Requests{modify.StripHopByHop{}, modify.RequestIdentity{}}
//	err := steps.ModifyRequest(req)
//
// A modifier holds only what it needs, passed to it as values. It does not
// decide whether it applies: the proxy's lists do. One that cannot do its work,
// or that finds a response in which a credential could hide, returns an
// [*Error], and the exchange ends there.
package modify

import (
	"fmt"
	"net/http"

	"github.com/google/martian/v3"
)

// Requests is an ordered list of modifiers of a request. Unlike martian's
// fifo.Group it takes no lock, logs nothing and allocates nothing.
type Requests []martian.RequestModifier

// ModifyRequest applies each modifier until one fails.
func (l Requests) ModifyRequest(r *http.Request) error {
	for _, m := range l {
		if err := m.ModifyRequest(r); err != nil {
			return err
		}
	}
	return nil
}

// Responses is an ordered list of modifiers of a response.
type Responses []martian.ResponseModifier

// ModifyResponse applies each modifier until one fails.
func (l Responses) ModifyResponse(res *http.Response) error {
	for _, m := range l {
		if err := m.ModifyResponse(res); err != nil {
			return err
		}
	}
	return nil
}

// ResponseFunc is a function that is a modifier of a response.
type ResponseFunc = martian.ResponseModifierFunc

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
