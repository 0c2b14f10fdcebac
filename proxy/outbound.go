package proxy

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/ALRubinger/aileron/proxy/modify"
	"github.com/ALRubinger/aileron/proxy/scrub"
	"github.com/ALRubinger/aileron/proxy/wire"
)

// modifyRequest returns the request for the upstream: a new one, made of what was
// judged, behind the request steps.
func (x *Exchange) modifyRequest(bound *Bound) (*http.Request, *Denial) {
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
	if err := x.requestSteps(bound).ModifyRequest(out); err != nil {
		return nil, denyStep(err)
	}
	return out, nil
}

// modifyResponse makes the response fit for the client, by the response steps.
// The body of one that is denied is closed.
func (x *Exchange) modifyResponse(res *http.Response) *Denial {
	x.row.Status = res.StatusCode
	if err := x.responseSteps(res).ModifyResponse(res); err != nil {
		_ = res.Body.Close()
		return denyStep(err)
	}
	return nil
}

// acceptedFields returns the step that removes the client's fields which a
// credentialed operation does not accept.
func (x *Exchange) acceptedFields() modify.KeepAccepted {
	return modify.KeepAccepted{Operation: x.match.Operation, GRPC: modify.IsGRPC(x.request.Header),
		WebSocket: x.websocket != nil}
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
	names := plainNames(x.acceptedFields().Dropped(x.request.Header))
	if len(names) == 0 {
		return
	}
	listed := names[:min(len(names), maxDroppedFields)]
	x.row.Fields["dropped_headers"] = listed
	if n := len(names) - len(listed); n > 0 {
		x.row.Fields["dropped_headers_omitted"] = n
	}
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

// How long a response's head waits for the first bytes of its body.
const (
	peekWait       = time.Second
	peekWaitStream = 100 * time.Millisecond
)

// rejectPacked returns the step that judges the body of a response to a
// credential.
func (x *Exchange) rejectPacked() *modify.RejectPacked {
	return &modify.RejectPacked{Method: x.request.Method, Declared: x.match.Operation.Packed, Wait: x.p.peek,
		StreamWait: x.p.peekStream}
}

// uploaded reports whether the request's body has been sent.
func (x *Exchange) uploaded() bool {
	length := x.request.ContentLength
	return x.sent == nil || length >= 0 && x.sent.Sent() >= length || x.sent.Ended()
}

// scrub returns the secrets to look for now. The set only grows, and a response
// that began before a credential was bound must not reveal it either.
func (x *Exchange) scrub() *scrub.Set {
	if now := x.p.grants.Load().Scrub; now != nil {
		return now
	}
	return x.grants.Scrub
}
