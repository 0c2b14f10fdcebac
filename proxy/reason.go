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
	ReasonHost       Reason = "host_not_allowed"      // package spec's
	ReasonNotMatched Reason = "operation_not_matched" // package spec's
	ReasonQuery      Reason = "query_not_declared"    // package spec's
	ReasonAuthority  Reason = "authority_mismatch"
	ReasonMalformed  Reason = "malformed_request"
	ReasonScheme     Reason = "insecure_scheme"
	ReasonApproval   Reason = "approval_required"

	ReasonApprovalDenied Reason = "approval_denied"
	ReasonApprovals      Reason = "too_many_approvals"

	ReasonUpgrade   Reason = "upgrade_not_declared"
	ReasonBody      Reason = "body_not_declared"
	ReasonArguments Reason = "arguments_invalid"

	// What is denied by a request's body.
	ReasonContent     Reason = "content_not_allowed"
	ReasonUndecidable Reason = "body_undecidable"

	// What a client may not do, or did not do in time.
	ReasonToken        Reason = "token_missing_or_wrong"
	ReasonCrossSite    Reason = "cross_site"
	ReasonOwnerOnly    Reason = "owner_only"
	ReasonNotFound     Reason = "not_found"
	ReasonMethod       Reason = "method_not_allowed"
	ReasonNotTLS       Reason = "protocol_violation"
	ReasonTLSClient    Reason = "client_handshake_failed"
	ReasonNoRequest    Reason = "no_request"
	ReasonHeadTooLarge Reason = "head_too_large"
	ReasonTooLarge     Reason = "body_too_large"
	ReasonClientBody   Reason = "body_broken"
	ReasonSlow         Reason = "request_too_slow"
	ReasonClientGone   Reason = "client_gone"
	ReasonUndelivered  Reason = "response_not_delivered"

	// What the session has too little of.
	ReasonConcurrency Reason = "too_many_connections"
	ReasonOverload    Reason = "too_many_requests"
	ReasonRate        Reason = "rate_exceeded"
	ReasonBudget      Reason = "budget_exhausted"
	ReasonMemory      Reason = "memory_budget_exhausted"
	ReasonDescriptors Reason = "descriptors_exhausted"

	// What the session cannot do at the moment.
	ReasonUnbound      Reason = "credential_not_bound"
	ReasonCredential   Reason = "credential_unusable" //nolint:gosec // a word
	ReasonRenewal      Reason = "token_not_renewed"
	ReasonVaultLocked  Reason = "vault_locked"
	ReasonVaultUnread  Reason = "vault_unreadable"
	ReasonAudit        Reason = "audit_unavailable"
	ReasonUnrecordable Reason = "outcome_not_recorded"
	ReasonDraining     Reason = "draining"
	ReasonCA           Reason = "session_ca_not_valid"
	ReasonPanic        Reason = "internal_error"

	// What came of an upstream.
	ReasonAddress             Reason = "address_not_allowed"
	ReasonName                Reason = "name_not_resolved"
	ReasonDial                Reason = "upstream_unreachable"
	ReasonTLSUpstream         Reason = "upstream_not_verified"
	ReasonClientCert          Reason = "client_certificate_required"
	ReasonProxyRefused        Reason = "upstream_proxy_refused"
	ReasonProxyFailed         Reason = "upstream_proxy_failed"
	ReasonUpstream            Reason = "upstream_broken"
	ReasonUpstreamHTTP        Reason = "upstream_not_http"
	ReasonUpstreamHead        Reason = "upstream_head_too_large"
	ReasonUpstreamSlow        Reason = "upstream_head_too_slow"
	ReasonUpstreamEnd         Reason = "upstream_closed"
	ReasonUpstreamRST         Reason = "upstream_reset"
	ReasonUpstreamUnprocessed Reason = "upstream_unprocessed"
	ReasonTruncated           Reason = "upstream_truncated"
	ReasonTimeout             Reason = "upstream_timeout"

	// What a response to a credential may not be.
	ReasonEncoding  Reason = "content_encoding"
	ReasonCharset   Reason = "charset"
	ReasonPartial   Reason = "partial_content"
	ReasonPacked    Reason = "packed_body"
	ReasonFieldName Reason = "odd_field_name"
	ReasonSwitch    Reason = "switching_protocols"
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
	approvalDenied        class = "approval_denied"
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
	hintContent = "Do not retry: use what is granted. " +
		"If the task needs it, ask the user to install a connector that allows it."
	hintJudged = "Send the body as JSON in UTF-8 with each key once, with Content-Type: application/json and without " +
		"a Content-Encoding, so that it can be judged as the host will read it."
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
		"Sending the request again brings the same."
)

// meanings is the table of all reasons. What lasts has a status of 4xx: clients try a 5xx again, npm for 89 seconds.
var meanings = map[Reason]meaning{
	ReasonHost:       {capabilityDenied, 403, false, hintGranted},
	ReasonNotMatched: {capabilityDenied, 403, false, hintGranted},
	ReasonQuery:      {capabilityDenied, 403, false, hintGranted},
	ReasonAuthority: {invalidRequest, 421, false,
		"Open a new connection for each host, and send that host in Host and SNI."},
	ReasonMalformed: {invalidRequest, 400, false, hintForm},
	ReasonScheme:    {invalidRequest, 400, false, "Use https."},
	ReasonApproval: {approvalRequired, 403, true,
		"Nothing was sent. Tell the user that it waits for an approval, which they decide with: aileron approval list. " +
			"Send the same request again later, unchanged: once approved, it passes."},
	ReasonApprovalDenied: {approvalDenied, 403, false,
		"Nothing was sent. Do not retry, and do not try another way: ask the user what to do instead."},
	ReasonApprovals: {resourceLimitExceeded, 429, true,
		"Nothing was sent. Tell the user that approvals wait, and do not ask for more until some are decided."},
	ReasonUpgrade: {capabilityDenied, 426, false,
		"Use plain HTTPS requests: this operation does not allow an upgrade."},
	ReasonBody: {invalidRequest, 400, false, "Send this request without a body."},
	ReasonActionUnusable: {capabilityDenied, 403, false,
		"Do not retry. The user finds what is wrong with: aileron action show %s"},
	ReasonPinMissing: {capabilityDenied, 403, false,
		"Do not retry. The user installs what actions pin with: aileron sync"},
	ReasonPinChanged: {hashMismatch, 409, false,
		"Do not retry. The user finds what is wrong with: aileron action show %s"},
	ReasonContent:     {capabilityDenied, 403, false, hintContent},
	ReasonUndecidable: {capabilityDenied, 403, false, hintJudged},
	ReasonArguments: {invalidRequest, 400, false,
		"Nothing was sent. Correct the call: the operation's inputs are what its connector declares."},

	ReasonToken:        {unauthenticated, 407, false, "Send the session's token, AILERON_TOKEN."},
	ReasonCrossSite:    {capabilityDenied, 403, false, hintOwner},
	ReasonOwnerOnly:    {capabilityDenied, 403, false, hintOwner},
	ReasonNotFound:     {invalidRequest, 404, false, hintSession},
	ReasonMethod:       {invalidRequest, 405, false, hintSession},
	ReasonNotTLS:       {invalidRequest, 400, false, hintForm},
	ReasonTLSClient:    {invalidRequest, 400, false, hintForm},
	ReasonNoRequest:    {invalidRequest, 400, false, hintForm},
	ReasonHeadTooLarge: {invalidRequest, 431, false, "Send fewer or shorter header fields."},
	ReasonTooLarge:     {resourceLimitExceeded, 413, false, "Send a smaller body."},
	ReasonClientBody:   {invalidRequest, 400, false, "Send the whole body with valid framing." + hintSent},
	ReasonSlow:         {timedOut, 408, true, "Send the whole request without long pauses."},
	ReasonClientGone:   {networkError, 502, false, hintBroken},
	ReasonUndelivered:  {networkError, 502, false, hintBroken},

	ReasonConcurrency: {resourceLimitExceeded, 429, true, hintClose},
	ReasonOverload:    {unavailable, 503, true, "Wait for requests that are under way, then try again."},
	ReasonRate:        {resourceLimitExceeded, 429, true, "Send fewer requests in a second."},
	ReasonBudget: {resourceLimitExceeded, 429, false,
		"Nothing was sent. Do not retry: tell the user that the budget is used up. They see what was used with: " +
			"aileron audit list --event budget.reached, and start a session with more of it with --budget."},
	ReasonMemory: {resourceLimitExceeded, 429, true,
		"Read the responses that are under way, or close their connections, then try again."},
	ReasonDescriptors: {unavailable, 503, true, hintClose + " The user can raise the limit of open files (ulimit -n)."},

	ReasonUnbound: {bindingRequired, 403, false,
		"Ask the user to bind a credential: aileron binding setup %s"},
	ReasonCredential: {bindingFailed, 403, false,
		"Ask the user to bind the credential again: aileron binding rebind %s"},
	ReasonRenewal: {bindingFailed, 503, true,
		"Wait a minute, then try again. The user's terminal says why the service sent no new token."},
	ReasonVaultLocked:         {unavailable, 503, true, "Ask the user to unlock the vault: aileron vault unlock."},
	ReasonVaultUnread:         {unavailable, 503, true, hintHome},
	ReasonConnectorUnreadable: {unavailable, 503, true, hintHome},
	ReasonStoreUnreadable:     {unavailable, 503, true, hintHome},
	ReasonHomeMissing:         {unavailable, 503, true, hintHome},
	ReasonAudit:               {unavailable, 503, true, hintAudit},
	ReasonUnrecordable:        {unavailable, 503, true, hintAudit},
	ReasonDraining:            {unavailable, 503, false, "The session is ending."},
	ReasonCA: {unavailable, 503, false,
		"Ask the user to set the clock right, or to start a new session."},
	ReasonPanic: {runtimeError, 502, false,
		"This is a fault of aileron. The user finds more with aileron audit show."},

	ReasonAddress: {capabilityDenied, 403, false,
		"The agent reaches no private, local or metadata address. Do not retry: for a host of the user's own, " +
			"the user can start the session with --resolve HOST:PORT:ADDRESS, or set allow_ranges in config.toml."},
	ReasonName:        {networkError, 502, true, hintDial},
	ReasonDial:        {networkError, 502, true, hintDial},
	ReasonTLSUpstream: {networkError, 403, false, "Nothing was sent. Do not retry: it does not pass with time."},
	ReasonClientCert: {networkError, 403, false,
		"aileron has no certificate to present. Do not retry: use a host that takes another credential, " +
			"or ask the user, who can have its TLS relayed undecrypted if no connector names the host: tunnel in config.toml."},
	ReasonProxyRefused: {networkError, 403, false, "Nothing was sent. Do not retry: ask the user to correct " +
		"--upstream-proxy, to have the host allowed there, or to list it in [upstream] no_proxy of config.toml."},
	ReasonProxyFailed:  {networkError, 502, true, "Nothing was sent, so it may be sent again. Try again later."},
	ReasonUpstream:     {networkError, 502, false, hintBroken},
	ReasonUpstreamHTTP: {networkError, 502, false, hintNoHTTP},
	ReasonUpstreamHead: {networkError, 502, false, hintNoHTTP},
	ReasonUpstreamSlow: {timedOut, 504, false, hintSlow},
	ReasonUpstreamEnd:  {networkError, 502, false, hintBroken},
	ReasonUpstreamRST:  {networkError, 502, false, hintBroken},
	ReasonUpstreamUnprocessed: {networkError, 503, true,
		"The request had no effect. Send it again."},
	ReasonTruncated: {networkError, 502, false, hintBroken},
	ReasonTimeout:   {timedOut, 504, false, hintSlow},

	ReasonEncoding:  {responseUnsafe, 406, false, hintUnsafe},
	ReasonCharset:   {responseUnsafe, 406, false, hintUnsafe},
	ReasonPartial:   {responseUnsafe, 406, false, hintUnsafe},
	ReasonPacked:    {responseUnsafe, 406, false, hintUnsafe},
	ReasonFieldName: {responseUnsafe, 406, false, hintUnsafe},
	ReasonSwitch:    {responseUnsafe, 406, false, hintUnsafe},
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
	return meanings[ReasonPanic]
}
