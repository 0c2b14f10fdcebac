package modify

import (
	"net/http"
	"strings"

	"github.com/google/martian/v3/header"

	"github.com/ALRubinger/aileron/proxy/wire"
)

// StripHopByHop removes the fields of one hop: RFC 9110 section 7.6.1.
//
// Request and response: what Connection names goes, and Connection, Keep-Alive,
// the Proxy fields, Te, Trailer, Transfer-Encoding and Upgrade.
type StripHopByHop struct{}

// ModifyRequest implements martian.RequestModifier.
func (StripHopByHop) ModifyRequest(r *http.Request) error {
	return header.NewHopByHopModifier().ModifyRequest(r)
}

// ModifyResponse implements martian.ResponseModifier.
func (StripHopByHop) ModifyResponse(res *http.Response) error {
	return header.NewHopByHopModifier().ModifyResponse(res)
}

// StripHandled removes the fields that this hop has dealt with, and that
// Connection need not name.
//
// Request: Http2-Settings, Expect and Priority go.
type StripHandled struct{}

// ModifyRequest implements martian.RequestModifier.
func (StripHandled) ModifyRequest(r *http.Request) error {
	strip(r.Header, "Http2-Settings", "Expect", "Priority")
	return nil
}

// StripSession removes the id of a session of MCP.
//
// Request: Mcp-Session-Id goes, and what a server takes for it that has underscores for dashes.
type StripSession struct{}

// Dropped returns the names of fields that go.
func (StripSession) Dropped(h http.Header) (names []string) {
	for name := range h {
		if strings.EqualFold(strings.ReplaceAll(name, "_", "-"), "Mcp-Session-Id") {
			names = append(names, name)
		}
	}
	return names
}

// ModifyRequest implements martian.RequestModifier.
func (s StripSession) ModifyRequest(r *http.Request) error {
	strip(r.Header, s.Dropped(r.Header)...)
	return nil
}

// StripNonTokens removes fields whose name is no token: net/http keeps
// "Set-Cookie " under a name of its own, and lenient clients take it for the
// field.
//
// Response: such fields go.
type StripNonTokens struct{}

// ModifyResponse implements martian.ResponseModifier.
func (StripNonTokens) ModifyResponse(res *http.Response) error {
	stripNonTokens(res.Header)
	return nil
}

func stripNonTokens(h http.Header) {
	for name := range h {
		if !wire.IsToken(name) {
			delete(h, name)
		}
	}
}

// StripAltSvc removes advice that leads a client around the proxy (RFC 7838),
// asks it to authenticate to another proxy, or claims to come from this one.
//
// Response: Alt-Svc, the proxy authentication fields and X-Aileron-Audit-Id go.
type StripAltSvc struct{}

// ModifyResponse implements martian.ResponseModifier.
func (StripAltSvc) ModifyResponse(res *http.Response) error {
	strip(res.Header, "Alt-Svc", "Proxy-Authenticate", "Proxy-Authentication-Info", "X-Aileron-Audit-Id")
	return nil
}

// StripIssuedCredentials removes what an upstream issues to the credential's
// owner: a session cookie is as good as the credential.
//
// Response: cookies and authentication fields go.
type StripIssuedCredentials struct{}

// ModifyResponse implements martian.ResponseModifier.
func (StripIssuedCredentials) ModifyResponse(res *http.Response) error {
	strip(res.Header, "Set-Cookie", "Set-Cookie2", "Authorization", "Authentication-Info", "Authentication-Control")
	return nil
}

// StripDigests removes digests of a body that may be changed: they would be
// wrong, and right ones would reveal what was redacted.
//
// Response: Content-MD5, the digest fields of RFC 9530 and RFC 3230, and
// X-Goog-Hash go.
type StripDigests struct{}

// ModifyResponse implements martian.ResponseModifier.
func (StripDigests) ModifyResponse(res *http.Response) error {
	strip(res.Header, "Content-Md5", "Digest", "Content-Digest", "Repr-Digest", "X-Goog-Hash")
	return nil
}

// StripAcceptRanges removes the offer of parts of the body, where the proxy asks
// for none.
//
// Response: Accept-Ranges goes.
type StripAcceptRanges struct{}

// ModifyResponse implements martian.ResponseModifier.
func (StripAcceptRanges) ModifyResponse(res *http.Response) error {
	strip(res.Header, "Accept-Ranges")
	return nil
}

// strip removes fields by their canonical names.
func strip(h http.Header, names ...string) {
	for _, name := range names {
		delete(h, name)
	}
}
