package proxy

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ALRubinger/aileron/proxy/meter"
	"github.com/ALRubinger/aileron/proxy/modify"
	"github.com/ALRubinger/aileron/proxy/wire"
)

// Denial is what was denied, why, and what would be allowed. It never holds a
// byte of a credential, a query, a header value or an upstream's error text.
type Denial struct {
	Reason    Reason
	Message   string
	Connector string // the connector that it is about, as FQN@VERSION; "": none
	Requested string
	Granted   []string
	AuditID   string
	Approval  string      // the id of the approval that it waits for, or that was denied; "": there is none
	Budget    *meter.Over // the limit that was reached; nil: none
	Boundary  string      // which boundary denied it, where there is more than one; "": there is one

	Subject string // what the hint names in place of its %s
	Effect  string // what is known of the request's effect; "": it was not sent, or changes nothing
	Came    int    // the status of the upstream's response; 0: there was none

	GraphQL bool // the client reads responses of GraphQL

	advice *advice // in place of the reason's, whose causes differ; nil: the reason's

	status int  // where RFC 9110 has a closer one than the reason's own; 0: it has none
	ends   bool // the client's connection ends with the response
}

// Deny returns the denial for r, with what was wrong.
func (r Reason) Deny(format string, args ...any) *Denial {
	return &Denial{Reason: r, Message: fmt.Sprintf(format, args...)}
}

func (d *Denial) Error() string { return d.Message }

// advice is what a cause of a reason means, where the reason has several.
type advice struct {
	retriable bool
	hint      string
}

// meaning returns what d stands for.
func (d *Denial) meaning() meaning {
	m := d.Reason.meaning()
	if d.advice != nil {
		m.retriable, m.hint = d.advice.retriable, d.advice.hint
	}
	return m
}

// Text returns the message with what to do next.
func (d *Denial) Text() string {
	hint := strings.ReplaceAll(d.meaning().hint, "%s", cmp.Or(d.Subject, "NAME"))
	return "aileron: " + d.Message + ". " + hint + d.Effect
}

// WithStatus returns d with a status that is closer than that of its reason.
func (d *Denial) WithStatus(status int) *Denial {
	d.status = status
	return d
}

// WithHint returns d with what to do next, where its reason's other causes need something else. It does not help to try
// again.
func (d *Denial) WithHint(hint string) *Denial {
	d.advice = &advice{false, hint}
	return d
}

// Ends reports whether the client's connection ends with the response.
func (d *Denial) Ends() bool { return d.ends }

// ErrorClass returns the class of the error.
func (d *Denial) ErrorClass() string { return string(d.Reason.meaning().class) }

// Status returns the HTTP status of the denial, in the response and in the audit
// row alike.
func (d *Denial) Status() int {
	if d.status != 0 {
		return d.status
	}
	return d.Reason.meaning().status
}

// JSON returns the error object: docs/errors.md.
func (d *Denial) JSON() []byte {
	m := d.meaning()
	granted := d.Granted
	if granted == nil {
		granted = []string{}
	}
	details := map[string]string{"reason": string(d.Reason)}
	if d.Boundary != "" {
		details["boundary"] = d.Boundary
	}
	if d.Approval != "" {
		details["approval_id"], details["poll"] = d.Approval, "http://"+APIHost+ApprovalsPath+d.Approval
	}
	if b := d.Budget; b != nil {
		details["budget"], details["meter"] = b.Budget, b.Name
		details["used"], details["limit"] = strconv.FormatInt(b.Used, 10), strconv.FormatInt(b.Limit, 10)
		if b.Wait > time.Second {
			details["resets_in"] = strconv.Itoa(int(b.Wait.Seconds()))
		}
	}
	if d.Came != 0 {
		details["upstream_status"] = strconv.Itoa(d.Came)
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	body := map[string]any{"error": map[string]any{
		"class": m.class, "message": d.Text(), "connector": d.Connector, "requested": d.Requested, "granted": granted,
		"audit_id": d.AuditID, "retriable": m.retriable, "details": details,
	}}
	if d.GraphQL {
		body["errors"] = []any{d.graphQLError()}
	}
	_ = enc.Encode(body)
	return out.Bytes()
}

// graphQLError returns the denial as an error of GraphQL (October 2021, section 7.1.2), which is all that gh, Linear's
// SDK and others print. code is where Apollo's clients look for a cause, and type where Linear's does.
func (d *Denial) graphQLError() map[string]any {
	extensions := map[string]any{"code": d.Reason}
	switch d.Status() {
	case http.StatusForbidden:
		extensions["type"] = "forbidden"
	case http.StatusTooManyRequests:
		extensions["type"] = "ratelimited"
	}
	return map[string]any{"message": d.Text(), "extensions": extensions}
}

// Response returns the denial as a response to req, which may be nil.
func (d *Denial) Response(req *http.Request) *http.Response {
	if req != nil && req.ProtoMajor == 2 && modify.IsGRPC(req.Header) {
		return d.grpc(req)
	}
	body := d.JSON()
	h := http.Header{
		"Content-Type":           {"application/json"},
		"Cache-Control":          {"no-store"},
		"Content-Length":         {strconv.Itoa(len(body))},
		"X-Content-Type-Options": {"nosniff"},
		"X-Should-Retry":         {strconv.FormatBool(d.meaning().retriable)}, // read by SDKs of model providers
	}
	if d.AuditID != "" {
		h.Set("X-Aileron-Audit-Id", d.AuditID)
	}
	if d.ends {
		h.Set("Connection", "close")
	}
	switch d.Status() {
	case http.StatusProxyAuthRequired:
		h.Set("Proxy-Authenticate", `Basic realm="aileron"`)
	case http.StatusUnauthorized:
		h.Set("Www-Authenticate", `Bearer realm="aileron"`)
	case http.StatusUpgradeRequired:
		h.Set("Upgrade", "HTTP/1.1")
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		if d.meaning().retriable {
			h.Set("Retry-After", "1")
		}
	}
	if d.Budget != nil {
		// Clients that try again all the same must not do so at once. Nor must they wait until midnight, as opencode does
		// where it is told so, and shows nothing meanwhile.
		h.Set("Retry-After", "1")
	}
	if d.Reason == ReasonApproval && d.meaning().retriable {
		h.Set("Retry-After", strconv.Itoa(retryApproval))
	}
	phrase := d.phrase()
	return &http.Response{
		Status: strconv.Itoa(d.Status()) + " " + phrase, StatusCode: d.Status(),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: h, Request: req,
		Body: &denialBody{Reader: bytes.NewReader(body), phrase: phrase}, ContentLength: int64(len(body)),
		Close: d.ends,
	}
}

// maxPhrase bounds the reason phrase of a denial, in bytes.
const maxPhrase = 200

// phrase returns the reason phrase of the denial. npm, pip and others show it in place of the body, so it carries the
// reason too. It holds printable ASCII only (RFC 9112 section 4), whatever the message quotes.
func (d *Denial) phrase() string {
	message, _, _ := strings.Cut(d.Message, ";")
	text := fmt.Sprintf("%s (aileron: %s: %s", http.StatusText(d.Status()), d.Reason, message)
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, text)
	return text[:min(len(text), maxPhrase-1)] + ")"
}

// denialBody is the body of a denial, which has a reason phrase of its own.
type denialBody struct {
	*bytes.Reader
	phrase string
}

var _ wire.Phrased = (*denialBody)(nil)

// ReasonPhrase implements wire.Phrased.
func (b *denialBody) ReasonPhrase() string { return b.phrase }

// Close does nothing.
func (b *denialBody) Close() error { return nil }

// grpc returns the denial as a gRPC status, since gRPC clients show nothing of a
// JSON body: a status and a message in a response without any message
// ("Trailers-Only" in gRPC's description of its protocol over HTTP/2).
func (d *Denial) grpc(req *http.Request) *http.Response {
	h := http.Header{
		"Content-Type": {"application/grpc"}, "Grpc-Status": {strconv.Itoa(grpcStatus(d.meaning()))},
		"Grpc-Message": {grpcText(d.Text())},
	}
	if d.AuditID != "" {
		h.Set("X-Aileron-Audit-Id", d.AuditID)
	}
	return &http.Response{StatusCode: http.StatusOK, Header: h, Request: req, Body: http.NoBody, Close: d.ends}
}

// grpcStatus returns the code that is closest to m. UNAVAILABLE, which clients
// try again by themselves, is returned only where that is safe.
func grpcStatus(m meaning) int {
	const (
		codeUnknown, codeInvalidArgument, codeDeadlineExceeded = 2, 3, 4
		codePermissionDenied, codeResourceExhausted            = 7, 8
		codeUnavailable, codeUnauthenticated                   = 14, 16
	)
	switch {
	case m.class == resourceLimitExceeded:
		return codeResourceExhausted
	case m.class == responseUnsafe: // not the client's fault, whatever the status
		return codeUnknown
	case m.retriable && m.status >= 500:
		return codeUnavailable
	case m.class == unauthenticated:
		return codeUnauthenticated
	case m.class == timedOut:
		return codeDeadlineExceeded
	case m.status == http.StatusForbidden, m.status == http.StatusUpgradeRequired:
		return codePermissionDenied
	case m.status < 500:
		return codeInvalidArgument
	}
	return codeUnknown
}

// grpcText returns s with what a grpc-message may not hold percent-encoded.
func grpcText(s string) string {
	var out strings.Builder
	for _, c := range []byte(s) {
		if c < ' ' || c > '~' || c == '%' {
			fmt.Fprintf(&out, "%%%02X", c)
			continue
		}
		out.WriteByte(c)
	}
	return out.String()
}
