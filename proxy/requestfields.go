package proxy

import (
	"net/http"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/proxy/wire"
	"github.com/ALRubinger/aileron/spec"
)

// fieldGroup is a row of the table of accepted request fields.
type fieldGroup struct {
	what  string // as in docs/connectors.md
	when  func(*Exchange) bool
	names []string
}

// acceptedFields are the request fields that reach an operation with a
// credential without being declared: they describe the content and the program
// that sends it. All are registered (RFC 9110 section 16.3.1, or by the
// protocol named), and none carries authority that a server could act on.
// docs/connectors.md has the table with the reasons, and what is left out.
var acceptedFields = []fieldGroup{
	{what: "content", names: []string{"Content-Type", "Content-Encoding", "Content-Language", "Content-Disposition",
		"Content-Range", "Content-Digest", "Repr-Digest", "Digest", "Content-MD5"}},
	{what: "negotiation", names: []string{"Accept", "Accept-Charset", "Accept-Language", "Prefer"}},
	{what: "conditions", names: []string{"If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since",
		"Last-Event-ID"}},
	{what: "ranges", when: (*Exchange).takesRanges, names: []string{"Range", "If-Range"}},
	{what: "caching", names: []string{"Cache-Control", "Pragma"}},
	{what: "trace context", names: []string{"traceparent", "tracestate"}},
	{what: "client", names: []string{"User-Agent", "Date", "Sec-CH-UA", "Sec-CH-UA-Mobile", "Sec-CH-UA-Platform",
		"Sec-Fetch-Dest", "Sec-Fetch-Mode", "Sec-Fetch-Site", "Sec-Fetch-User"}},
	{what: "gRPC", when: (*Exchange).sendsGRPC, names: []string{"grpc-timeout", "grpc-encoding", "grpc-accept-encoding",
		"grpc-previous-rpc-attempts"}},
}

// acceptedGroups is acceptedFields by canonical name.
var acceptedGroups = func() map[string]*fieldGroup {
	groups := map[string]*fieldGroup{}
	for i := range acceptedFields {
		for _, name := range acceptedFields[i].names {
			groups[canonical(name)] = &acceptedFields[i]
		}
	}
	return groups
}()

func (x *Exchange) takesRanges() bool { return x.match.Operation.Ranges }
func (x *Exchange) sendsGRPC() bool   { return isGRPC(x.request.Header) }

// acceptsField reports whether a credentialed operation takes the client's
// field: a registered one of the table, or one that the spec declares. Names
// are compared as they are, so that no spelling passes for another.
func (x *Exchange) acceptsField(name string) bool {
	if g := acceptedGroups[name]; g != nil {
		return g.when == nil || g.when(x)
	}
	return x.match.Operation.AcceptsField(name)
}

// dropUnaccepted removes every field that the operation does not accept.
func (x *Exchange) dropUnaccepted(r *http.Request) error {
	for name := range r.Header {
		if !x.acceptsField(name) {
			delete(r.Header, name)
		}
	}
	return nil
}

// replacedFields are those of the hop and the framing, and those that aileron
// answers or sends itself: the client's own value is not missed.
var replacedFields = map[string]bool{
	"Accept-Encoding": true, "Connection": true, "Content-Length": true, "Expect": true, "Host": true,
	"Http2-Settings": true, "Keep-Alive": true, "Priority": true, "Proxy-Connection": true, "Te": true,
	"Trailer": true, "Transfer-Encoding": true, "Upgrade": true,
}

// Bounds of the names in an audit row, which the client chooses.
const (
	maxDroppedFields = 32
	maxDroppedName   = 64
)

// recordDropped puts the names of the client's fields that will not be sent
// into the row, sorted and in lower case. Trailers of requests end in
// [wire], which sends none.
func (x *Exchange) recordDropped() {
	if !x.credentialed() {
		return
	}
	var names []string
	for name := range x.request.Header {
		if !x.acceptsField(name) && !x.replaces(name) {
			names = append(names, name)
		}
	}
	if names = plainNames(names); len(names) == 0 {
		return
	}
	shown := names[:min(len(names), maxDroppedFields)]
	x.row.Fields["dropped_headers"] = shown
	if n := len(names) - len(shown); n > 0 {
		x.row.Fields["dropped_headers_omitted"] = n
	}
}

// replaces reports whether a field is sent with a value of aileron's own, or
// belongs to the hop.
func (x *Exchange) replaces(name string) bool {
	in := x.match.Operation.Injection
	return replacedFields[name] || in.In == "header" && name == canonical(in.Name) ||
		x.handshake != "" && strings.HasPrefix(name, "Sec-Websocket-")
}

// plainNames returns names for an audit row: tokens in lower case, bounded,
// sorted, each once.
func plainNames(names []string) []string {
	var plain []string
	for _, name := range names {
		if wire.IsToken(name) {
			plain = append(plain, strings.ToLower(name[:min(len(name), maxDroppedName)]))
		}
	}
	slices.Sort(plain)
	return slices.Compact(plain)
}

// carries reports whether a name is that of a credential.
func carries(name string) bool { return spec.NamesCredential(name) }
