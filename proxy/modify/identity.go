package modify

import (
	"net/http"
	"strings"
)

// RequestIdentity asks for a response that can be searched as it streams, and a
// gRPC server not to compress its messages. Requests may be compressed.
//
// Request: Accept-Encoding is identity; with gRPC, Grpc-Accept-Encoding too.
type RequestIdentity struct{}

// ModifyRequest implements martian.RequestModifier.
func (RequestIdentity) ModifyRequest(r *http.Request) error {
	r.Header["Accept-Encoding"] = identity
	if IsGRPC(r.Header) {
		r.Header["Grpc-Accept-Encoding"] = identity
	}
	return nil
}

// Values that all requests share: no modifier changes a value in place.
var (
	identity = []string{"identity"}
	trailers = []string{"trailers"}
)

// AcceptTrailers announces that the response's trailers are taken: a gRPC
// server refuses a client that does not.
//
// Request: Te is trailers.
type AcceptTrailers struct{}

// ModifyRequest implements martian.RequestModifier.
func (AcceptTrailers) ModifyRequest(r *http.Request) error {
	r.Header["Te"] = trailers
	return nil
}

// IsGRPC reports whether h is that of a gRPC request, whose response is in
// messages and trailers.
func IsGRPC(h http.Header) bool {
	rest, ok := strings.CutPrefix(h.Get("Content-Type"), "application/grpc")
	return ok && (rest == "" || rest[0] == '+' || rest[0] == ';')
}
