package modify

import (
	"net/http"
	"strings"

	"github.com/ALRubinger/aileron/spec"
)

// fieldGroup is a row of the table of accepted request fields.
type fieldGroup struct {
	what  string                  // as in docs/connectors.md
	when  func(KeepAccepted) bool // nil: always
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
	{what: "ranges", when: KeepAccepted.takesRanges, names: []string{"Range", "If-Range"}},
	{what: "caching", names: []string{"Cache-Control", "Pragma"}},
	{what: "trace context", names: []string{"traceparent", "tracestate"}},
	{what: "client", names: []string{"User-Agent", "Date", "Sec-CH-UA", "Sec-CH-UA-Mobile", "Sec-CH-UA-Platform",
		"Sec-Fetch-Dest", "Sec-Fetch-Mode", "Sec-Fetch-Site", "Sec-Fetch-User"}},
	{what: "MCP", when: KeepAccepted.isMCP, names: []string{"Mcp-Session-Id", "MCP-Protocol-Version", "Mcp-Method",
		"Mcp-Name"}},
	{what: "gRPC", when: KeepAccepted.isGRPC, names: []string{"grpc-timeout", "grpc-encoding", "grpc-accept-encoding",
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

// KeepAccepted removes every field that a credentialed operation does not
// accept: one that grants, routes or identifies would act with the authority of
// the credential.
//
// Request: what stays is a field of the table of accepted fields, or one that
// the operation declares.
type KeepAccepted struct {
	Operation *spec.Operation // has an Injection
	GRPC      bool            // the request is one of gRPC
	WebSocket bool            // the request is a WebSocket's handshake
}

func (m KeepAccepted) takesRanges() bool { return m.Operation.Ranges }
func (m KeepAccepted) isGRPC() bool      { return m.GRPC }
func (m KeepAccepted) isMCP() bool       { return m.Operation.MCP != nil }

// ModifyRequest implements martian.RequestModifier.
func (m KeepAccepted) ModifyRequest(r *http.Request) error {
	for name := range r.Header {
		if !m.accepts(name) {
			delete(r.Header, name)
		}
	}
	return nil
}

// accepts reports whether the operation takes the client's field. Names are
// compared as they are, so that no spelling passes for another.
func (m KeepAccepted) accepts(name string) bool {
	if g := acceptedGroups[name]; g != nil {
		return g.when == nil || g.when(m)
	}
	return m.Operation.AcceptsField(name)
}

// Dropped returns the names of the fields of h that the modifier removes and
// that are sent by no other step either: those that the client misses. They
// are in no order.
func (m KeepAccepted) Dropped(h http.Header) []string {
	var names []string
	for name := range h {
		if !m.replaces(name) && !m.accepts(name) {
			names = append(names, name)
		}
	}
	return names
}

// replacedFields are those of the hop and the framing, and those that the proxy
// answers or sends itself: the client's own value is not missed.
var replacedFields = map[string]bool{
	"Accept-Encoding": true, "Connection": true, "Content-Length": true, "Expect": true, "Host": true,
	"Http2-Settings": true, "Keep-Alive": true, "Priority": true, "Proxy-Connection": true, "Te": true,
	"Trailer": true, "Transfer-Encoding": true, "Upgrade": true,
}

// replaces reports whether a field is sent with a value of the proxy's own, or
// belongs to the hop.
func (m KeepAccepted) replaces(name string) bool {
	in := m.Operation.Injection
	return replacedFields[name] || in.In == "header" && name == canonical(in.Name) ||
		m.WebSocket && strings.HasPrefix(name, "Sec-Websocket-")
}
