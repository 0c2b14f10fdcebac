package proxy

import (
	"maps"
	"slices"
	"strings"
)

// Reason is why a request was denied or an exchange failed: details.reason of an
// error, and the reason column of its audit row. meanings is the table of what
// each stands for, which docs/errors.md explains row by row.
type Reason string

// The reasons of [Grants].Unreadable.
const (
	ReasonConnectorUnreadable Reason = "connector_unreadable"
	ReasonStoreUnreadable     Reason = "store_unreadable"
	ReasonHomeMissing         Reason = "home_missing"
)

// The reasons of [Action].
const (
	ReasonActionUnusable Reason = "action_unusable"
	ReasonPinMissing     Reason = "pin_not_installed"
	ReasonPinChanged     Reason = "hash_mismatch"
)

const (
	// What [Decide] denies.
	reasonHost       Reason = "host_not_allowed"      // package spec's
	reasonNotMatched Reason = "operation_not_matched" // package spec's
	reasonQuery      Reason = "query_not_declared"    // package spec's
	reasonAuthority  Reason = "authority_mismatch"
	reasonMalformed  Reason = "malformed_request"
	reasonScheme     Reason = "insecure_scheme"
	reasonApproval   Reason = "approval_required"
	reasonUpgrade    Reason = "upgrade_not_declared"
	reasonBody       Reason = "body_not_declared"
	reasonArguments  Reason = "arguments_invalid"

	// What a client may not do, or did not do in time.
	reasonToken        Reason = "token_missing_or_wrong"
	reasonCrossSite    Reason = "cross_site"
	reasonOwnerOnly    Reason = "owner_only"
	reasonNotFound     Reason = "not_found"
	reasonMethod       Reason = "method_not_allowed"
	reasonNotTLS       Reason = "protocol_violation"
	reasonTLSClient    Reason = "client_handshake_failed"
	reasonNoRequest    Reason = "no_request"
	reasonHeadTooLarge Reason = "head_too_large"
	reasonTooLarge     Reason = "body_too_large"
	reasonClientBody   Reason = "body_broken"
	reasonSlow         Reason = "request_too_slow"
	reasonClientGone   Reason = "client_gone"
	reasonUndelivered  Reason = "response_not_delivered"

	// What the session has too little of.
	reasonConcurrency Reason = "too_many_connections"
	reasonOverload    Reason = "too_many_requests"
	reasonRate        Reason = "rate_exceeded"
	reasonMemory      Reason = "memory_budget_exhausted"
	reasonDescriptors Reason = "descriptors_exhausted"

	// What the session cannot do at the moment.
	reasonUnbound      Reason = "credential_not_bound"
	reasonCredential   Reason = "credential_unusable" //nolint:gosec // a word
	reasonVaultLocked  Reason = "vault_locked"
	reasonVaultUnread  Reason = "vault_unreadable"
	reasonAudit        Reason = "audit_unavailable"
	reasonUnrecordable Reason = "outcome_not_recorded"
	reasonDraining     Reason = "draining"
	reasonCA           Reason = "session_ca_not_valid"
	reasonPanic        Reason = "internal_error"

	// What came of an upstream.
	reasonAddress      Reason = "address_not_allowed"
	reasonName         Reason = "name_not_resolved"
	reasonDial         Reason = "upstream_unreachable"
	reasonTLSUpstream  Reason = "upstream_not_verified"
	reasonUpstream     Reason = "upstream_broken"
	reasonUpstreamHTTP Reason = "upstream_not_http"
	reasonUpstreamHead Reason = "upstream_head_too_large"
	reasonUpstreamSlow Reason = "upstream_head_too_slow"
	reasonUpstreamEnd  Reason = "upstream_closed"
	reasonUpstreamRST  Reason = "upstream_reset"
	reasonTruncated    Reason = "upstream_truncated"
	reasonTimeout      Reason = "upstream_timeout"

	// What a response to a credential may not be.
	reasonEncoding  Reason = "content_encoding"
	reasonCharset   Reason = "charset"
	reasonPartial   Reason = "partial_content"
	reasonPacked    Reason = "packed_body"
	reasonFieldName Reason = "odd_field_name"
	reasonSwitch    Reason = "switching_protocols"
)

// ReasonTunnelHost is the reason column of a row that is no denial.
const ReasonTunnelHost = "tunnel_host"

// class is the class of an error: CONTRACT section 4.
type class string

const (
	capabilityDenied      class = "capability_denied"
	bindingRequired       class = "binding_required"
	bindingFailed         class = "binding_failed"
	approvalRequired      class = "approval_required"
	resourceLimitExceeded class = "resource_limit_exceeded"
	invalidRequest        class = "invalid_request"
	unauthenticated       class = "unauthenticated"
	unavailable           class = "unavailable"
	networkError          class = "network_error"
	timedOut              class = "timeout"
	responseUnsafe        class = "response_unsafe"
	runtimeError          class = "connector_runtime_error"
	hashMismatch          class = "hash_mismatch"
)

// meaning is what a reason means to a client.
type meaning struct {
	class     class
	status    int
	retriable bool   // trying again may help
	hint      string // what to do next; %s stands for the denial's subject
}

const (
	hintGranted = "Do not retry: use one of the granted operations. " +
		"If the task needs it, ask the user to install a connector that allows it."
	hintForm    = "Send a well-formed request."
	hintOwner   = "Only the owner of the session may do this, on its control socket."
	hintSession = "GET /v1/session returns what this session offers."
	hintClose   = "Close connections that are idle, then try again."
	hintAudit   = "The request could not be recorded, so it was not sent. Try again later, " +
		"and ask the user to check the disk, and the log with aileron audit verify."
	hintHome = "What this session may do could not be read. Try again later, " +
		"and ask the user to check the disk and the permissions of the home."
	hintDial   = "The upstream could not be reached. Try again later."
	hintSent   = " Check whether the request took effect before sending it again."
	hintNoHTTP = "What the upstream sent is no response of HTTP, or has no end." + hintSent
	hintBroken = "The upstream's response broke off." + hintSent
	hintSlow   = "The upstream took too long." + hintSent
	hintUnsafe = "The response could not be searched for secrets, so it was not passed on. " +
		"The request was sent and may have taken effect."
)

// meanings is the table of all reasons.
var meanings = map[Reason]meaning{
	reasonHost:       {capabilityDenied, 403, false, hintGranted},
	reasonNotMatched: {capabilityDenied, 403, false, hintGranted},
	reasonQuery:      {capabilityDenied, 403, false, hintGranted},
	reasonAuthority: {invalidRequest, 421, false,
		"Open a new connection for each host, and send that host in Host and SNI."},
	reasonMalformed: {invalidRequest, 400, false, hintForm},
	reasonScheme:    {invalidRequest, 400, false, "Use https."},
	reasonApproval: {approvalRequired, 403, false,
		"There is no way to approve yet, so do not retry."},
	reasonUpgrade: {capabilityDenied, 426, false,
		"Use plain HTTPS requests: this operation does not allow an upgrade."},
	reasonBody: {invalidRequest, 400, false, "Send this request without a body."},
	ReasonActionUnusable: {capabilityDenied, 403, false,
		"Do not retry. The user finds what is wrong with: aileron action show %s"},
	ReasonPinMissing: {capabilityDenied, 403, false,
		"Do not retry. The user installs what actions pin with: aileron sync"},
	ReasonPinChanged: {hashMismatch, 409, false,
		"Do not retry. The user finds what is wrong with: aileron action show %s"},
	reasonArguments: {invalidRequest, 400, false,
		"Nothing was sent. Correct the call: the operation's inputs are what its connector declares."},

	reasonToken:        {unauthenticated, 407, false, "Send the session's token, AILERON_TOKEN."},
	reasonCrossSite:    {capabilityDenied, 403, false, hintOwner},
	reasonOwnerOnly:    {capabilityDenied, 403, false, hintOwner},
	reasonNotFound:     {invalidRequest, 404, false, hintSession},
	reasonMethod:       {invalidRequest, 405, false, hintSession},
	reasonNotTLS:       {invalidRequest, 400, false, hintForm},
	reasonTLSClient:    {invalidRequest, 400, false, hintForm},
	reasonNoRequest:    {invalidRequest, 400, false, hintForm},
	reasonHeadTooLarge: {invalidRequest, 431, false, "Send fewer or shorter header fields."},
	reasonTooLarge:     {resourceLimitExceeded, 413, false, "Send a smaller body."},
	reasonClientBody:   {invalidRequest, 400, false, "Send the whole body with valid framing." + hintSent},
	reasonSlow:         {timedOut, 408, true, "Send the whole request without long pauses."},
	reasonClientGone:   {networkError, 502, false, hintBroken},
	reasonUndelivered:  {networkError, 502, false, hintBroken},

	reasonConcurrency: {resourceLimitExceeded, 429, true, hintClose},
	reasonOverload:    {unavailable, 503, true, "Wait for requests that are under way, then try again."},
	reasonRate:        {resourceLimitExceeded, 429, true, "Send fewer requests in a second."},
	reasonMemory: {resourceLimitExceeded, 429, true,
		"Read the responses that are under way, or close their connections, then try again."},
	reasonDescriptors: {unavailable, 503, true, hintClose + " The user can raise the limit of open files (ulimit -n)."},

	reasonUnbound: {bindingRequired, 403, false,
		"Ask the user to bind a credential: aileron binding setup %s"},
	reasonCredential: {bindingFailed, 502, false,
		"Ask the user to bind the credential again: aileron binding rebind %s"},
	reasonVaultLocked:         {unavailable, 503, true, "Ask the user to unlock the vault: aileron vault unlock."},
	reasonVaultUnread:         {unavailable, 503, true, hintHome},
	ReasonConnectorUnreadable: {unavailable, 503, true, hintHome},
	ReasonStoreUnreadable:     {unavailable, 503, true, hintHome},
	ReasonHomeMissing:         {unavailable, 503, true, hintHome},
	reasonAudit:               {unavailable, 503, true, hintAudit},
	reasonUnrecordable:        {unavailable, 503, true, hintAudit},
	reasonDraining:            {unavailable, 503, false, "The session is ending."},
	reasonCA: {unavailable, 503, false,
		"Ask the user to set the clock right, or to start a new session."},
	reasonPanic: {runtimeError, 502, false,
		"This is a fault of aileron. The user finds more with aileron audit show."},

	reasonAddress: {capabilityDenied, 403, false,
		"Private, local and metadata addresses are never reached. Do not retry."},
	reasonName:         {networkError, 502, true, hintDial},
	reasonDial:         {networkError, 502, true, hintDial},
	reasonTLSUpstream:  {networkError, 502, true, hintDial},
	reasonUpstream:     {networkError, 502, false, hintBroken},
	reasonUpstreamHTTP: {networkError, 502, false, hintNoHTTP},
	reasonUpstreamHead: {networkError, 502, false, hintNoHTTP},
	reasonUpstreamSlow: {timedOut, 504, false, hintSlow},
	reasonUpstreamEnd:  {networkError, 502, false, hintBroken},
	reasonUpstreamRST:  {networkError, 502, false, hintBroken},
	reasonTruncated:    {networkError, 502, false, hintBroken},
	reasonTimeout:      {timedOut, 504, false, hintSlow},

	reasonEncoding:  {responseUnsafe, 502, false, hintUnsafe},
	reasonCharset:   {responseUnsafe, 502, false, hintUnsafe},
	reasonPartial:   {responseUnsafe, 502, false, hintUnsafe},
	reasonPacked:    {responseUnsafe, 502, false, hintUnsafe},
	reasonFieldName: {responseUnsafe, 502, false, hintUnsafe},
	reasonSwitch:    {responseUnsafe, 502, false, hintUnsafe},
}

// Reasons returns the reasons of all denials, sorted.
func Reasons() []Reason { return slices.Sorted(maps.Keys(meanings)) }

// Advice returns the hint that denials for the reason have, or "" for a reason that no denial has.
func (r Reason) Advice() string { return strings.ReplaceAll(meanings[r].hint, "%s", "NAME") }

// meaning returns what r stands for. A reason that is not in the table is a bug,
// and reads as an internal error.
func (r Reason) meaning() meaning {
	if m, ok := meanings[r]; ok {
		return m
	}
	return meanings[reasonPanic]
}
