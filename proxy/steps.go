package proxy

import (
	"net/http"
	"net/textproto"
	"net/url"
	"strings"

	"github.com/google/martian/v3/fifo"
	"github.com/google/martian/v3/header"
)

// requestSteps returns what happens to a request on its way out, in order. The
// feature list of the request side reads off this function.
func (x *Exchange) requestSteps(bound *Bound) *fifo.Group {
	g := fifo.NewGroup()
	g.AddRequestModifier(header.NewHopByHopModifier()) // RFC 9110 section 7.6.1, what Connection names included
	g.AddRequestModifier(requestStep(dropProxyFields))
	if x.credentialed() {
		g.AddRequestModifier(requestStep(x.dropUnaccepted))
		g.AddRequestModifier(requestStep(requestIdentity))
		g.AddRequestModifier(requestStep(x.dropQueryCarriers))
		g.AddRequestModifier(injection{*x.match.Operation.Injection, *bound, x.match})
	}
	if isGRPC(x.request.Header) {
		g.AddRequestModifier(requestStep(acceptTrailers))
	}
	if x.handshake != "" {
		g.AddRequestModifier(requestStep(x.offerWebSocket))
	}
	return g
}

type requestStep func(*http.Request) error

func (f requestStep) ModifyRequest(r *http.Request) error { return f(r) }

// dropProxyFields removes fields that this hop has dealt with and that
// Connection need not name.
func dropProxyFields(r *http.Request) error {
	for _, name := range []string{"Http2-Settings", "Expect", "Priority"} {
		r.Header.Del(name)
	}
	return nil
}

// requestIdentity asks for a response that can be searched as it streams, and
// a gRPC server not to compress its messages. Requests may be compressed.
func requestIdentity(r *http.Request) error {
	r.Header.Set("Accept-Encoding", "identity")
	if isGRPC(r.Header) {
		r.Header["Grpc-Accept-Encoding"] = []string{"identity"}
	}
	return nil
}

// isGRPC reports a gRPC request, whose response is in messages and trailers.
func isGRPC(h http.Header) bool {
	rest, ok := strings.CutPrefix(h.Get("Content-Type"), "application/grpc")
	return ok && (rest == "" || rest[0] == '+' || rest[0] == ';')
}

// acceptTrailers announces that the response's trailers are taken: a gRPC
// server refuses a client that does not.
func acceptTrailers(r *http.Request) error {
	r.Header["Te"] = []string{"trailers"}
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
