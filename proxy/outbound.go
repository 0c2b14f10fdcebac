package proxy

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/proxy/modify"
	"github.com/ALRubinger/aileron/proxy/wire"
)

// modifyRequest returns the request for the upstream: a new one, made of what was
// judged, behind the request steps. Its header is the client's own map, which from
// here on may hold the credential: no response is made of it.
func (x *Exchange) modifyRequest() (*http.Request, *Denial) {
	t := &x.target
	path, err := url.PathUnescape(t.Path)
	if err != nil {
		return nil, ReasonMalformed.Deny("the path has a broken escape")
	}
	x.url = url.URL{Scheme: t.Scheme, Host: x.address(), Path: path, RawPath: t.Path,
		RawQuery: t.Query, ForceQuery: t.Query == "" && strings.HasSuffix(x.request.RequestURI, "?")}
	switch {
	case x.decision.Verbatim:
		x.url.Opaque = t.Path
	case isOdd(*t, x.url.EscapedPath()):
		return nil, ReasonMalformed.Deny("the path has more than one spelling")
	}
	out := &x.out
	*out = *(&http.Request{
		Method: x.request.Method,
		URL:    &x.url,
		Host:   x.at.Authority.HostHeader(t.Scheme),
		Header: x.request.Header,
		Proto:  "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}).WithContext(x.request.Context())
	delete(out.Header, "Host")
	if x.sent != nil {
		out.Body, out.ContentLength = x.sent, x.request.ContentLength
	}
	if _, has := out.Header["User-Agent"]; !has {
		out.Header["User-Agent"] = nil // net/http: a missing key would add its own
	}
	if err := apply(requestSteps, x, out); err != nil {
		return nil, denyStep(err)
	}
	return out, nil
}

// modifyResponse makes the response fit for the client, by the response steps.
// The body of one that is denied is closed.
func (x *Exchange) modifyResponse(res *http.Response) *Denial {
	x.row.Status = res.StatusCode
	if err := apply(x.stepsOf(res), x, res); err != nil {
		_ = res.Body.Close()
		d := denyStep(err)
		d.Came, d.Effect = res.StatusCode, x.effect(res.StatusCode)
		return d
	}
	return nil
}

// effect returns what a response with status, which is not passed on, says of its request. 0 is that of a response
// whose head was rejected.
func (x *Exchange) effect(status int) string {
	switch {
	case isSafe(x.request.Method):
		return ""
	case status == 0:
		return hintSent
	case x.grpc:
	case status/100 == 2, status == http.StatusSeeOther:
		return fmt.Sprintf(" The host answered %d: the request took effect.", status)
	case slices.Contains(noEffect, status):
		return fmt.Sprintf(" The host answered %d: the request had no effect.", status)
	}
	return fmt.Sprintf(" The host answered %d.", status) + hintSent
}

// noEffect are the statuses that say that a request was not carried out (RFC 9110 section 15.5). A redirect and a 408
// leave that open.
var noEffect = []int{http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound,
	http.StatusMethodNotAllowed, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType,
	http.StatusUnprocessableEntity, http.StatusTooManyRequests}

// Bounds of the names in an audit row, which the client chooses.
const (
	maxDroppedFields = 32
	maxDroppedName   = 64
)

// recordDropped puts the names of the client's fields that will not be sent
// into the row, sorted and in lower case. Trailers of requests end in
// [wire], which sends none.
func (x *Exchange) recordDropped() {
	var all []string
	if x.credentialed() {
		all = x.acceptedFields().Dropped(x.request.Header)
	}
	if x.besideMCP() {
		all = append(all, modify.StripSession{}.Dropped(x.request.Header)...)
	}
	names := plainNames(all)
	if len(names) == 0 {
		return
	}
	listed := names[:min(len(names), maxDroppedFields)]
	x.SetField("dropped_headers", listed)
	if n := len(names) - len(listed); n > 0 {
		x.SetField("dropped_headers_omitted", n)
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
