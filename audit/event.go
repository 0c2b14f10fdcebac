package audit

import (
	"slices"

	"github.com/ALRubinger/aileron/audit/internal/chain"
)

// The events. Those of a command's intent and of its failure are derived from a [Change]: [Change.Started] and
// [Change.Failed].
const (
	EventProxyStarted   = chain.EventProxyStarted
	EventProxyUnknown   = chain.EventProxyUnknown
	EventSessionStarted = chain.EventSessionStarted
	EventSessionEnded   = chain.EventSessionEnded
	EventBroken         = chain.EventBroken
	EventCheckpoint     = chain.EventCheckpoint
	EventPruned         = chain.EventPruned

	EventProxyProxied          Event = "connector.proxy.proxied"
	EventProxyRejected         Event = "connector.proxy.rejected"
	EventSandboxPassthrough    Event = "sandbox.proxy.passthrough"
	EventSandboxRejected       Event = "sandbox.proxy.rejected"
	EventSandboxDisabled       Event = "sandbox.proxy.disabled"
	EventSandboxPort           Event = "sandbox.port.connected"
	EventOperationRejected     Event = "connector.operation.rejected"
	EventSessionGrantsChanged  Event = "session.grants_changed"
	EventBindingCreated        Event = "binding.created"
	EventBindingRebound        Event = "binding.rebound"
	EventBindingRevoked        Event = "binding.revoked"
	EventBindingRefreshStarted Event = "binding.refresh_started"
	EventBindingRefreshed      Event = "binding.refreshed"
	EventBindingRefreshFailed  Event = "binding.refresh_failed"
	EventBindingUsed           Event = "binding.used"
	EventVaultCreated          Event = "vault.created"
	EventVaultUnlocked         Event = "vault.unlocked"
	EventVaultLocked           Event = "vault.locked"
	EventVaultRekeyed          Event = "vault.rekeyed"
	EventConnectorInstalled    Event = "connector.installed"
	EventConnectorRemoved      Event = "connector.removed"
	EventConnectorVerifyFailed Event = "connector.verify_failed"
	EventCATrusted             Event = "ca.trusted"
	EventCAUntrusted           Event = "ca.untrusted"
	EventPublisherKeyAdded     Event = "publisher_key.added"
	EventPublisherKeyRemoved   Event = "publisher_key.removed"
	EventActionAdded           Event = "action.added"
	EventActionRemoved         Event = "action.removed"
	EventRecovered             Event = "audit.recovered"
	EventApprovalRequested     Event = "approval.requested"
	EventApprovalApproved      Event = "approval.approved"
	EventApprovalDenied        Event = "approval.denied"
	EventApprovalExpired       Event = "approval.expired"
	EventBudgetReached         Event = "budget.reached"
)

// eventTable has every event but those of changes, in the order of docs/audit.md, which repeats it: a test compares
// the two.
var eventTable = []struct {
	event   Event
	meaning string
}{
	{EventProxyStarted, "the intent of a request that is about to be sent upstream"},
	{EventProxyProxied, "the outcome of an operation's request that was sent"},
	{EventProxyRejected, "an operation's request that was denied, or got no response"},
	{EventProxyUnknown, "the outcome of an intent whose session was killed"},
	{EventSandboxPassthrough, "the outcome of a request to a host that no connector names, or of an undecrypted tunnel"},
	{EventSandboxRejected, "a request that is no operation"},
	{EventSandboxDisabled, "a sandbox that was not mediated, or not started"},
	{EventSandboxPort, "a connection of this host to a published port of the sandbox"},
	{EventOperationRejected, "a call by name that makes no request: its operation or arguments are wrong"},
	{EventSessionStarted, "a session serves"},
	{EventSessionEnded, "a session has ended, or was found killed"},
	{EventSessionGrantsChanged, "connectors or bindings of a running session changed"},
	{EventBindingCreated, "a credential was bound"},
	{EventBindingRebound, "a binding got another secret"},
	{EventBindingRevoked, "a binding was removed"},
	{EventBindingRefreshStarted, "the intent of a renewal: the service is about to be asked for a token"},
	{EventBindingRefreshed, "a session has renewed the token of a login"},
	{EventBindingRefreshFailed, "it could not, or the login has ended; without a `binding.refresh_started` of the same " +
		"`request_id`, nothing was asked"},
	{EventBindingUsed, "a command is about to send the credential to a forge, to fetch a connector that is not public"},
	{EventVaultCreated, "the vault was created"},
	{EventVaultUnlocked, "the vault was unlocked"},
	{EventVaultLocked, "the vault was locked"},
	{EventVaultRekeyed, "the vault has another passphrase"},
	{EventConnectorInstalled, "a connector was installed"},
	{EventConnectorRemoved, "a connector was removed"},
	{EventConnectorVerifyFailed, "an installed connector differs from what was installed, or cannot be read"},
	{EventCATrusted, "a session's root for this host was added to trust stores"},
	{EventCAUntrusted, "it was removed from all of them"},
	{EventPublisherKeyAdded, "a key may sign connectors of a publisher"},
	{EventPublisherKeyRemoved, "a key may not sign them any more, or all that was known of a publisher was removed"},
	{EventActionAdded, "an action was added, or replaced"},
	{EventActionRemoved, "an action was removed"},
	{EventApprovalRequested, "a request waits for a person's approval; equal ones wait with it"},
	{EventApprovalApproved, "a person, or their decider, has approved it, once or for more"},
	{EventApprovalDenied, "a person or their decider has denied it, or a person has taken an approval back"},
	{EventApprovalExpired, "it was not decided in time, or what was approved was not sent in time"},
	{EventBudgetReached, "80 percent of a limit is used, or all of it: that of the session, or one that sessions share"},
	{EventBroken, "the log, or what is kept beside it, was changed from outside"},
	{EventRecovered, "a damaged database was replaced by what could be read of it"},
	{EventCheckpoint, "the signed head of the log before this row"},
	{EventPruned, "old rows were removed; the row stands for them, and is signed"},
}

// Events returns all events, those of changes last.
func Events() []Event {
	var all []Event
	for _, e := range eventTable {
		all = append(all, e.event)
	}
	for _, c := range Changes() {
		all = append(all, c.Started(), c.Failed())
	}
	return all
}

// IsEvent reports whether e is one of [Events].
func IsEvent(e Event) bool { return slices.Contains(Events(), e) }

// The sources.
const (
	SourceConnectTLS      Source = "transparent_connect_tls"
	SourceConnectHTTP     Source = "connect_http"
	SourceForwardHTTP     Source = "forward_http"
	SourceConnectorShim   Source = "generated_connector_shim"
	SourceRequestBoundary Source = "daemon_request_boundary"
	SourceLauncher        Source = "launcher"
	SourceCLI             Source = "cli"
)

// sourceTable has every source; docs/audit.md repeats it.
var sourceTable = []struct {
	source  Source
	meaning string
}{
	{SourceConnectTLS, "a request in a decrypted tunnel"},
	{SourceConnectHTTP, "a request in a cleartext tunnel"},
	{SourceForwardHTTP, "a request in absolute form, without a tunnel"},
	{SourceConnectorShim, "a call of an operation by name, as a connector's command makes"},
	{SourceRequestBoundary, "a request that the session's API sends, a denied one to it, or a number of denials"},
	{SourceLauncher, "the session itself"},
	{SourceCLI, "a command"},
}

// Sources returns all sources.
func Sources() []Source {
	var all []Source
	for _, s := range sourceTable {
		all = append(all, s.source)
	}
	return all
}

// The decisions.
const (
	DecisionRejected = chain.DecisionRejected

	DecisionProxied     Decision = "proxied"
	DecisionPassthrough Decision = "passthrough"
	DecisionUpgrade     Decision = "upgrade"
	DecisionDisabled    Decision = "disabled"
)

// decisionTable has every decision; docs/audit.md repeats it.
var decisionTable = []struct {
	decision Decision
	meaning  string
}{
	{DecisionProxied, "sent upstream with what its operation allows"},
	{DecisionPassthrough, "forwarded unmodified"},
	{DecisionRejected, "denied, or without a response"},
	{DecisionUpgrade, "a WebSocket"},
	{DecisionDisabled, "not mediated, or not started"},
}

// Decisions returns all decisions.
func Decisions() []Decision {
	var all []Decision
	for _, d := range decisionTable {
		all = append(all, d.decision)
	}
	return all
}
