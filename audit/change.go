package audit

// Change names what a command does to what is in force: connectors, bindings,
// the vault. Its intent, of the event [Change.Started], is committed before
// the act, and its outcome, of the event [Change.Done] or [Change.Failed],
// after it. Both have the same fields.request_id.
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
)

// Changes lists the values of Change.
func Changes() []Change {
	return []Change{
		ChangeConnectorInstall, ChangeConnectorRemove, ChangeBindingSetup, ChangeBindingRebind, ChangeBindingRevoke,
		ChangeVaultInit, ChangeVaultUnlock, ChangeVaultLock, ChangeVaultPasswd,
	}
}

// Started returns the event of the change's intent.
func (c Change) Started() string { return string(c) + ".started" }

// Failed returns the event of an act that did not take place.
func (c Change) Failed() string { return string(c) + ".failed" }

// Done returns the event of an act that took place, "" for an unknown change.
func (c Change) Done() string {
	switch c {
	case ChangeConnectorInstall:
		return EventConnectorInstalled
	case ChangeConnectorRemove:
		return EventConnectorRemoved
	case ChangeBindingSetup:
		return EventBindingCreated
	case ChangeBindingRebind:
		return EventBindingRebound
	case ChangeBindingRevoke:
		return EventBindingRevoked
	case ChangeVaultInit:
		return EventVaultCreated
	case ChangeVaultUnlock:
		return EventVaultUnlocked
	case ChangeVaultLock:
		return EventVaultLocked
	case ChangeVaultPasswd:
		return EventVaultRekeyed
	}
	return ""
}
