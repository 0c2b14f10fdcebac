package proxy

import (
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"

	"github.com/google/martian/v3"
	"github.com/google/martian/v3/fifo"
	"github.com/google/martian/v3/header"
)

// requestSteps is what happens to a request on its way out, in order. The
// feature list of the request side reads off this function.
func (x *Exchange) requestSteps(bound *Bound) *fifo.Group {
	g := fifo.NewGroup()
	g.AddRequestModifier(header.NewHopByHopModifier()) // RFC 9110 section 7.6.1, what Connection names included
	if isGRPC(x.request.Header) {
		g.AddRequestModifier(requestStep(takeTrailers))
	}
	g.AddRequestModifier(requestStep(dropProxyFields))
	if x.credentialed() {
		op := x.match.Operation
		g.AddRequestModifier(requestStep(dropCarriers))
		g.AddRequestModifier(requestStep(dropOverrides))
		if !op.Idempotent {
			// net/http's Transport takes the mere presence of these for
			// permission to send a POST twice.
			g.AddRequestModifier(dropFields("Idempotency-Key", "X-Idempotency-Key"))
		}
		g.AddRequestModifier(requestStep(plainAnswer))
		if isGRPC(x.request.Header) {
			g.AddRequestModifier(requestStep(plainMessages))
		}
		if !op.Ranges {
			g.AddRequestModifier(dropFields("Range", "If-Range"))
		}
		g.AddRequestModifier(requestStep(x.dropQueryCarriers))
		g.AddRequestModifier(injection{*op.Injection, *bound, x.match})
	}
	if x.handshake != "" {
		g.AddRequestModifier(requestStep(x.offerWebSocket))
	}
	return g
}

type requestStep func(*http.Request) error

func (f requestStep) ModifyRequest(r *http.Request) error { return f(r) }

type dropping []string

// dropFields is a step that removes header fields.
func dropFields(names ...string) martian.RequestModifier { return dropping(names) }

func (d dropping) ModifyRequest(r *http.Request) error {
	for _, name := range d {
		r.Header.Del(name)
	}
	return nil
}

func dropProxyFields(r *http.Request) error {
	for _, name := range []string{"Proxy-Authorization", "Proxy-Connection", "Http2-Settings", "Expect", "Priority"} {
		r.Header.Del(name)
	}
	return nil
}

// carriers are words that, inside a header's name, say that its value
// authenticates someone. The box's own credentials would let it act as
// somebody else on a host that the user trusts, so none of them leaves.
var carriers = []string{"token", "secret", "api-key", "apikey", "password", "credential", "authorization", "cookie", "x-auth-"}

// carries reports a lower-case name that says that it authenticates someone.
func carries(name string) bool {
	return slices.ContainsFunc(carriers, func(word string) bool { return strings.Contains(name, word) })
}

func dropCarriers(r *http.Request) error {
	for name := range r.Header {
		if carries(strings.ToLower(name)) {
			delete(r.Header, name)
		}
		// CGI and WSGI fold "_" into "-": X_Api_Key is X-Api-Key to them.
		if strings.ContainsRune(name, '_') {
			delete(r.Header, name)
		}
	}
	return nil
}

// dropOverrides removes fields by which servers read another method, path,
// host or client than the one that was judged.
func dropOverrides(r *http.Request) error {
	for _, name := range []string{
		"X-Http-Method-Override", "X-Http-Method", "X-Method-Override",
		"X-Original-Url", "X-Rewrite-Url", "X-Override-Url", "X-Original-Uri", "X-Accel-Redirect", "X-Sendfile",
		"Forwarded", "Via", "X-Real-Ip", "X-Host", "X-Original-Host", "True-Client-Ip", "X-Client-Ip", "X-Cluster-Client-Ip",
	} {
		r.Header.Del(name)
	}
	for name := range r.Header {
		if strings.HasPrefix(name, "X-Forwarded-") || strings.HasPrefix(name, "X-Envoy-") {
			delete(r.Header, name)
		}
	}
	return nil
}

// plainAnswer asks for an answer that can be searched as it streams.
func plainAnswer(r *http.Request) error {
	r.Header.Set("Accept-Encoding", "identity")
	return nil
}

// isGRPC reports a gRPC request, whose answer is in messages and trailers.
func isGRPC(h http.Header) bool {
	rest, ok := strings.CutPrefix(h.Get("Content-Type"), "application/grpc")
	return ok && (rest == "" || rest[0] == '+' || rest[0] == ';')
}

// takeTrailers says that the answer's trailers arrive: a gRPC server refuses
// a client that does not say so.
func takeTrailers(r *http.Request) error {
	r.Header["Te"] = []string{"trailers"}
	return nil
}

// plainMessages asks a gRPC server not to compress what it says. Requests may
// be compressed.
func plainMessages(r *http.Request) error {
	r.Header["Grpc-Accept-Encoding"] = []string{"identity"}
	return nil
}

// queryCarriers are query names that authenticate someone at well-known APIs.
var queryCarriers = map[string]bool{
	"access_token": true, "api_key": true, "apikey": true, "key": true, "oauth_token": true,
	"auth_token": true, "token": true, "id_token": true, "refresh_token": true, "client_secret": true,
	"password": true, "private_token": true, "bearer_token": true,
}

// dropQueryCarriers removes the box's own credentials from the query, unless
// the operation declares the name, and always the name that is injected.
func (x *Exchange) dropQueryCarriers(r *http.Request) error {
	op := x.match.Operation
	declared := map[string]bool{}
	for _, name := range op.QueryInputs() {
		declared[name] = true
	}
	injected := ""
	if op.Injection.In == "query" {
		injected = strings.ToLower(op.Injection.Name)
	}
	kept := ""
	for pair := range strings.SplitSeq(r.URL.RawQuery, "&") {
		raw, _, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(raw)
		if err != nil {
			return deny(reasonMalformed, "the query has a broken escape")
		}
		base := folded(name)
		if injected != "" && base == folded(injected) || queryCarriers[base] && !declared[name] {
			continue
		}
		if len(kept) > 0 {
			kept += "&"
		}
		kept += pair
	}
	r.URL.RawQuery = kept
	return nil
}

// folded is a query name as the loosest of servers read it: in one case, PHP
// and Rack take "a[]" for "a", and PHP cuts at a NUL, skips leading spaces and
// takes dots, spaces and open brackets for underscores.
func folded(name string) string {
	name, _, _ = strings.Cut(strings.ToLower(name), "\x00")
	name, _, _ = strings.Cut(strings.TrimLeft(name, " "), "[")
	return strings.NewReplacer(".", "_", " ", "_", "-", "_").Replace(name)
}

// outbound makes the upstream's request: a new one, serialised anew from what
// was judged.
func (x *Exchange) outbound(bound *Bound) (*http.Request, *Denial) {
	t := x.target
	path, err := url.PathUnescape(t.Path)
	if err != nil {
		return nil, deny(reasonMalformed, "the path has a broken escape")
	}
	out := (&http.Request{
		Method: x.request.Method,
		URL: &url.URL{Scheme: t.Scheme, Host: x.authority.String(), Path: path, RawPath: t.Path,
			RawQuery: t.Query, ForceQuery: t.Query == "" && strings.HasSuffix(x.request.RequestURI, "?")},
		Host:   x.authority.HostHeader(t.Scheme),
		Header: x.request.Header.Clone(),
		Proto:  "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}).WithContext(x.request.Context())
	out.Header.Del("Host")
	if x.sent != nil {
		out.Body, out.ContentLength = x.sent, x.request.ContentLength
	}
	if _, has := out.Header["User-Agent"]; !has {
		out.Header["User-Agent"] = nil // net/http: a missing key would add its own
	}
	if out.URL.EscapedPath() != t.Path {
		return nil, deny(reasonMalformed, "the path has more than one spelling")
	}
	if x.match.Operation == nil { // passthrough: only the hop's own fields go
		_ = header.NewHopByHopModifier().ModifyRequest(out)
		if x.handshake != "" {
			_ = x.offerWebSocket(out)
		}
		return out, nil
	}
	if err := x.requestSteps(bound).ModifyRequest(out); err != nil {
		if d, ok := err.(*Denial); ok { //nolint:errorlint // the steps return it bare
			return nil, d
		}
		return nil, deny(reasonPanic, "a request step failed")
	}
	return out, nil
}

// canonical is textproto's name for a header field.
func canonical(name string) string { return textproto.CanonicalMIMEHeaderKey(name) }
