package audit

// Change is what a command does to what is in force: connectors, bindings, the vault, the trust stores of this host.
// Its intent, the event [Change.Started], is committed before the act; its outcome, the event [Change.Done] or
// [Change.Failed], after it. Both have the same fields.request_id.
type Change string

// The changes that commands make.
const (
	ChangeConnectorInstall Change = "connector.install"
	ChangeConnectorRemove  Change = "connector.remove"
	ChangeBindingSetup     Change = "binding.setup"
	ChangeBindingRebind    Change = "binding.rebind"
	ChangeBindingRevoke    Change = "binding.revoke"
	ChangeVaultInit        Change = "vault.init"
	ChangeVaultUnlock      Change = "vault.unlock"
	ChangeVaultLock        Change = "vault.lock"
	ChangeVaultPasswd      Change = "vault.passwd"
	ChangeCATrust          Change = "ca.trust"
	ChangeCAUntrust        Change = "ca.untrust"

	ChangePublisherKeyAdd    Change = "publisher_key.add"
	ChangePublisherKeyRemove Change = "publisher_key.remove"

	ChangeActionAdd    Change = "action.add"
	ChangeActionRemove Change = "action.remove"
)

// changeTable has every change, and the event of one that took effect.
var changeTable = []struct {
	change Change
	done   Event
}{
	{ChangeConnectorInstall, EventConnectorInstalled},
	{ChangeConnectorRemove, EventConnectorRemoved},
	{ChangeBindingSetup, EventBindingCreated},
	{ChangeBindingRebind, EventBindingRebound},
	{ChangeBindingRevoke, EventBindingRevoked},
	{ChangeVaultInit, EventVaultCreated},
	{ChangeVaultUnlock, EventVaultUnlocked},
	{ChangeVaultLock, EventVaultLocked},
	{ChangeVaultPasswd, EventVaultRekeyed},
	{ChangeCATrust, EventCATrusted},
	{ChangeCAUntrust, EventCAUntrusted},
	{ChangePublisherKeyAdd, EventPublisherKeyAdded},
	{ChangePublisherKeyRemove, EventPublisherKeyRemoved},
	{ChangeActionAdd, EventActionAdded},
	{ChangeActionRemove, EventActionRemoved},
}

// Changes returns all changes.
func Changes() []Change {
	var all []Change
	for _, c := range changeTable {
		all = append(all, c.change)
	}
	return all
}

// Started returns the event of the intent.
func (c Change) Started() Event { return Event(c) + ".started" }

// Failed returns the event of a change that did not take effect.
func (c Change) Failed() Event { return Event(c) + ".failed" }

// Done returns the event of a change that took effect; "" for an unknown change.
func (c Change) Done() Event {
	for _, row := range changeTable {
		if row.change == c {
			return row.done
		}
	}
	return ""
}
