package proxy

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/ALRubinger/aileron/proxy/modify"
)

// Reasons of denials: the values of details.reason and of the audit rows'
// reason column. docs/errors.md is the list with their mends.
const (
	reasonHost         = "host_not_allowed"
	reasonAuthority    = "authority_mismatch"
	reasonMalformed    = "malformed_request"
	reasonScheme       = "insecure_scheme"
	reasonAddress      = "address_not_allowed"
	reasonAudit        = "audit_unavailable"
	reasonVaultLocked  = "vault_locked"
	reasonDraining     = "draining"
	reasonVaultUnread  = "vault_unreadable"
	reasonUnbound      = "credential_not_bound"
	reasonApproval     = "approval_required"
	reasonToken        = "token_missing_or_wrong"
	reasonNotTLS       = "protocol_violation"
	reasonTLSClient    = "client_handshake_failed"
	reasonUpgrade      = "upgrade_not_declared"
	reasonBody         = "body_not_declared"
	reasonClientBody   = "body_broken"
	reasonName         = "name_not_resolved"
	reasonDial         = "upstream_unreachable"
	reasonTLSUpstream  = "upstream_not_verified"
	reasonUpstream     = "upstream_broken"
	reasonUpstreamHTTP = "upstream_not_http"
	reasonUpstreamHead = "upstream_head_too_large"
	reasonUpstreamSlow = "upstream_head_too_slow"
	reasonUpstreamEnd  = "upstream_closed"
	reasonUpstreamRST  = "upstream_reset"
	reasonTimeout      = "upstream_timeout"
	reasonEncoding     = "content_encoding"
	reasonCharset      = "charset"
	reasonPartial      = "partial_content"
	reasonPacked       = "packed_body"
	reasonFieldName    = "odd_field_name"
	reasonSwitch       = "switching_protocols"
	reasonCredential   = "credential_unusable"
	reasonPanic        = "internal_error"
	reasonTooLarge     = "body_too_large"
	reasonClientGone   = "client_gone"
	reasonNotFound     = "not_found"
	reasonMethod       = "method_not_allowed"
	reasonOwnerOnly    = "owner_only"
	reasonConcurrency  = "too_many_connections"
	reasonMemory       = "memory_budget_exhausted"
	reasonOverload     = "too_many_requests"
	reasonDescriptors  = "descriptors_exhausted"
	reasonRate         = "rate_exceeded"
	reasonHeadTooLarge = "head_too_large"
	reasonSlow         = "request_too_slow"
	reasonCrossSite    = "cross_site"
	reasonUndelivered  = "response_not_delivered"
	reasonNoRequest    = "no_request"
	reasonTruncated    = "upstream_truncated"
	reasonUnrecordable = "outcome_not_recorded"
	reasonCA           = "session_ca_not_valid"
)

// The reasons of [Grants.Unreadable].
const (
	ReasonConnectorUnreadable = "connector_unreadable"
	ReasonStoreUnreadable     = "store_unreadable"
	ReasonHomeMissing         = "home_missing"
)

// noteTunnel is the reason column of a row that is no refusal.
const noteTunnel = "tunnel_host"

// kind is what a reason means to a client: the class of CONTRACT section 4,
// the status, whether trying again may help, and what to do next.
type kind struct {
	class     string
	status    int
	retriable bool
	mend      string
}

// kindOf is the table of all refusals. Whatever is not in it is a bug and
// reads as an internal error.
func kindOf(reason string) kind {
	const tellUser = "If the task needs it, ask the user to install a connector that allows it."
	switch reason {
	case reasonHost, "operation_not_matched", "query_not_declared":
		return kind{"capability_denied", 403, false, "Do not retry: use one of the granted operations. " + tellUser}
	case reasonUpgrade:
		return kind{"capability_denied", 426, false, "Use plain HTTPS requests: this operation does not allow an upgrade."}
	case reasonAddress:
		return kind{"capability_denied", 403, false, "Private, local and metadata addresses are never reached. Do not retry."}
	case reasonBody:
		return kind{"invalid_request", 400, false, "Send this request without a body."}
	case reasonClientBody:
		return kind{"invalid_request", 400, false, "Send the whole body with valid framing. Check whether the request took effect before sending it again."}
	case reasonAuthority:
		return kind{"invalid_request", 421, false, "Open a new connection for each host, and send that host in Host and SNI."}
	case reasonMalformed, reasonNotTLS, reasonTLSClient, reasonNoRequest:
		return kind{"invalid_request", 400, false, "Send a well-formed request."}
	case reasonHeadTooLarge:
		return kind{"invalid_request", 431, false, "Send fewer or shorter header fields."}
	case reasonScheme:
		return kind{"invalid_request", 400, false, "Use https."}
	case reasonTooLarge:
		return kind{"resource_limit_exceeded", 413, false, "Send a smaller body."}
	case reasonConcurrency:
		return kind{"resource_limit_exceeded", 429, true, "Close connections that are idle, then try again."}
	case reasonMemory:
		return kind{"resource_limit_exceeded", 429, true, "Read the answers that are under way, or close their connections, then try again."}
	case reasonRate:
		return kind{"resource_limit_exceeded", 429, true, "Send fewer requests in a second."}
	case reasonOverload:
		return kind{"unavailable", 503, true, "Wait for requests that are under way, then try again."}
	case reasonDescriptors:
		return kind{"unavailable", 503, true, "Close connections that are idle, then try again. The user can raise the limit of open files (ulimit -n)."}
	case reasonSlow:
		return kind{"timeout", 408, true, "Send the whole request without long pauses."}
	case reasonUnbound:
		return kind{"binding_required", 403, false, "Ask the user to bind a credential: aileron binding setup %s"}
	case reasonCredential:
		return kind{"binding_failed", 502, false, "Ask the user to bind the credential again: aileron binding rebind %s"}
	case reasonApproval:
		return kind{"approval_required", 403, false, "This operation asks for an approval, and there is no surface to approve on yet."}
	case reasonAudit, reasonUnrecordable:
		return kind{"unavailable", 503, true, "The request could not be written down, so it was not sent. Try again later, and tell the user to check the disk, and the log with aileron audit verify."}
	case reasonVaultLocked:
		return kind{"unavailable", 503, true, "Ask the user to unlock the vault: aileron vault unlock."}
	case reasonCA:
		return kind{"unavailable", 503, false, "Ask the user to set the clock right, or to start a new session."}
	case ReasonConnectorUnreadable, ReasonStoreUnreadable, ReasonHomeMissing, reasonVaultUnread:
		return kind{"unavailable", 503, true,
			"What this session may do could not be read. Try again later, and tell the user to check the disk and the rights on the home."}
	case reasonDraining:
		return kind{"unavailable", 503, false, "The session is ending."}
	case reasonToken:
		return kind{"unauthenticated", 407, false, "Send the session's token, AILERON_TOKEN."}
	case reasonCrossSite, reasonOwnerOnly:
		return kind{"capability_denied", 403, false, "Only the owner of the session may do this, on its control socket."}
	case reasonNotFound:
		return kind{"invalid_request", 404, false, "GET /v1/session says what this session offers."}
	case reasonMethod:
		return kind{"invalid_request", 405, false, "GET /v1/session says what this session offers."}
	case reasonName, reasonDial, reasonTLSUpstream:
		return kind{"network_error", 502, true, "The upstream could not be reached. Try again later."}
	case reasonUpstreamHTTP, reasonUpstreamHead:
		return kind{"network_error", 502, false, "What the upstream sent is no response of HTTP, or has no end. Check whether the request took effect before sending it again."}
	case reasonUpstream, reasonUpstreamEnd, reasonUpstreamRST, reasonTruncated, reasonClientGone, reasonUndelivered:
		return kind{"network_error", 502, false, "The upstream's answer broke off. Check whether the request took effect before sending it again."}
	case reasonTimeout, reasonUpstreamSlow:
		return kind{"timeout", 504, false, "The upstream took too long. Check whether the request took effect before sending it again."}
	case reasonEncoding, reasonCharset, reasonPartial, reasonSwitch, reasonPacked, reasonFieldName:
		return kind{"response_unsafe", 502, false, "The answer could not be searched for secrets, so it was not passed on. The request was sent and may have taken effect."}
	}
	return kind{"connector_runtime_error", 502, false, "Aileron failed. The user finds more in aileron audit show."}
}

// Denial is a refusal as a value: what was refused, why, and what would be
// allowed. It never holds a byte of a credential, a query, a header value or
// an upstream's error text.
type Denial struct {
	Reason    string
	Message   string
	Requested string
	Granted   []string
	AuditID   string

	status  int    // where RFC 9110 has a closer one than the reason's own; 0: it has none
	subject string // what the hint names in place of its %s
	ends    bool   // the client's connection ends with the answer
}

func deny(reason, format string, args ...any) *Denial {
	return &Denial{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

func (d *Denial) Error() string { return d.Message }

// text is the message with what to do next.
func (d *Denial) text() string {
	return "aileron: " + d.Message + ". " + strings.ReplaceAll(kindOf(d.Reason).mend, "%s", cmp.Or(d.subject, "NAME"))
}

// ErrorClass is the class of CONTRACT section 4.
func (d *Denial) ErrorClass() string { return kindOf(d.Reason).class }

// Status is the HTTP status of the denial, in the response and in the audit
// row alike.
func (d *Denial) Status() int {
	if d.status != 0 {
		return d.status
	}
	return kindOf(d.Reason).status
}

// JSON is the error object of CONTRACT section 4.
func (d *Denial) JSON() []byte {
	k := kindOf(d.Reason)
	granted := d.Granted
	if granted == nil {
		granted = []string{}
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(map[string]any{"error": map[string]any{
		"class": k.class, "message": d.text(), "requested": d.Requested, "granted": granted,
		"audit_id": d.AuditID, "retriable": k.retriable, "details": map[string]string{"reason": d.Reason},
	}})
	return out.Bytes()
}

// Response is the denial as an answer to req, which may be nil.
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
		h.Set("Retry-After", "1")
	}
	return &http.Response{
		StatusCode: d.Status(), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: h, Request: req,
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Close: d.ends,
	}
}

// grpc is the denial in the words of gRPC, whose clients show nothing of a
// JSON body: a status and a message in an answer without any message
// ("Trailers-Only" in gRPC's description of its protocol over HTTP/2).
func (d *Denial) grpc(req *http.Request) *http.Response {
	k := kindOf(d.Reason)
	h := http.Header{
		"Content-Type": {"application/grpc"}, "Grpc-Status": {strconv.Itoa(grpcStatus(k))},
		"Grpc-Message": {grpcText(d.text())},
	}
	if d.AuditID != "" {
		h.Set("X-Aileron-Audit-Id", d.AuditID)
	}
	return &http.Response{StatusCode: http.StatusOK, Header: h, Request: req, Body: http.NoBody, Close: d.ends}
}

// grpcStatus is the code that says what k says. UNAVAILABLE, which clients
// try again by themselves, is said only where that is safe.
func grpcStatus(k kind) int {
	const (
		unknown, invalidArgument, deadlineExceeded = 2, 3, 4
		permissionDenied, resourceExhausted        = 7, 8
		unavailable, unauthenticated               = 14, 16
	)
	switch {
	case k.class == "resource_limit_exceeded":
		return resourceExhausted
	case k.retriable && k.status >= 500:
		return unavailable
	case k.class == "unauthenticated":
		return unauthenticated
	case k.class == "timeout":
		return deadlineExceeded
	case k.status == http.StatusForbidden, k.status == http.StatusUpgradeRequired:
		return permissionDenied
	case k.status < 500:
		return invalidArgument
	}
	return unknown
}

// grpcText percent-encodes what a grpc-message may not hold as it is.
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
