// Package judge reads what a request's body asks for, for operations that decide by it:
//
//	content, err := judge.Read(op, request.Header, query, body)
//	if err != nil {
//		return err // it cannot be decided, so it is denied
//	}
//	chosen, err := judge.Choose(content, []*spec.Operation{op, other})
//	if err != nil {
//		return err // it is not allowed
//	}
//
// It does not know the server's parser: what two parsers might read differently is an [Undecidable], and never
// repaired. It changes nothing, and waits for nothing: the caller bounds the body by [MaxBody], and sends the bytes
// that it had judged.
//
// choose.go finds the operation of a content. mcp.go reads messages of the Model Context Protocol, graphql.go requests
// of GraphQL with the documents in them (quick.go and token.go those of the usual form, document.go and source.go all),
// and json.go the keys of an object.
package judge

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/ALRubinger/aileron/spec"
)

// MaxBody bounds a body that is judged, in bytes.
const MaxBody = 256 << 10

// Content is what a body asks for.
type Content interface {
	// Parts are all that it asks for, at least one.
	Parts() []Part
	// Fields are those of the exchange's audit rows.
	Fields() map[string]any
	// String is the content for people, in one line of plain characters.
	String() string
	// Repeated returns the body without what differs when a client sends the same again. body is what was read.
	Repeated(body []byte) []byte
}

// Part is one thing that a body asks for, such as the call of a tool.
type Part interface {
	// AllowedBy reports whether an operation allows it. One that judges bodies of another kind does not.
	AllowedBy(op *spec.Operation) bool
	// Requested is the part in the words of [spec.Operation.BodyGrants].
	Requested() string
	// String is the part for people, in one line of plain characters.
	String() string
}

// Undecidable is the error for a body of which it cannot be said what a server would make of it. It has no value of the
// body.
type Undecidable struct{ why string }

func (e *Undecidable) Error() string { return e.why }

func undecidable(format string, args ...any) error { return &Undecidable{fmt.Sprintf(format, args...)} }

// Read reads a request that may be op, which judges bodies. query is that of its URL, as it is sent: a GET has all
// there that others have in their body. Its error is an [Undecidable].
func Read(op *spec.Operation, header http.Header, query string, body []byte) (Content, error) {
	if op.GraphQL != nil && op.Method == http.MethodGet {
		if err := checkFields(header); err != nil {
			return nil, err
		}
		return readGraphQLQuery(query)
	}
	if err := checkType(header); err != nil {
		return nil, err
	}
	if op.GraphQL != nil {
		return readGraphQL(body)
	}
	return readMCP(header, body)
}

// checkFields checks that a server takes the request for the one that is judged, by the fields that are.
func checkFields(header http.Header) error {
	for _, named := range header["Connection"] {
		for name := range strings.SplitSeq(named, ",") {
			if name = lower(strings.TrimSpace(name)); strings.HasPrefix(name, "content-") || strings.HasPrefix(name, "mcp-") {
				return undecidable("Connection names a field of the body, which is not sent then")
			}
		}
	}
	for name := range header { // without a credential, all of them are sent
		if spec.MayReroute(name) {
			return undecidable("a server may take the field %q for another one, or the request for another", name)
		}
	}
	return nil
}

// checkType checks that a body is JSON in UTF-8, as it is, and what checkFields does.
func checkType(header http.Header) error { return checkMedia(header, "application/json") }

// checkMedia is checkType for another media type.
func checkMedia(header http.Header, want string) error {
	if err := checkFields(header); err != nil {
		return err
	}
	if len(header["Content-Encoding"]) > 0 {
		return undecidable("it has a Content-Encoding")
	}
	types := header["Content-Type"]
	if len(types) != 1 {
		return undecidable("it has no Content-Type of its own: it must be %s", want)
	}
	media, parameters, _ := strings.Cut(types[0], ";")
	charset := lower(strings.ReplaceAll(parameters, " ", ""))
	switch {
	case lower(strings.Trim(media, " \t")) != want:
		return undecidable("its Content-Type is not %s", want)
	case charset != "" && charset != "charset=utf-8" && charset != `charset="utf-8"`:
		return undecidable("its Content-Type has a parameter other than charset=utf-8")
	}
	return nil
}

// lower returns s with the letters of ASCII in lower case: others, such as the long s, are no letters of a field.
func lower(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}, s)
}
