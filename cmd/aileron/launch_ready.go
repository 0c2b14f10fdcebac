package main

import (
	"context"
	"os"
	"slices"

	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/vault"
)

// unlockFirst unlocks the vault for a session that is going to need it, before an image is built for minutes: a person
// types the passphrase and may walk away, and a wrong one is found at once. A passphrase that comes through a pipe is
// left to the session, which can be stopped while it waits.
func (a *app) unlockFirst(ctx context.Context, opts *sessionOptions) (err error) {
	if info, err := os.Stat(opts.passphraseFile); opts.passphraseFile != "" && (err != nil || !info.Mode().IsRegular()) {
		return nil //nolint:nilerr // the session reports it
	}
	v, err := a.vaultOf()
	if err != nil {
		return err
	}
	if v.LockedForAll() || !a.anyBound(v) {
		return nil
	}
	opts.opened, err = a.openVault(ctx, opts.passphraseFile)
	return err
}

// anyBound reports whether a session would use a binding. What cannot be read is left to the session to report.
func (a *app) anyBound(v *vault.Vault) bool {
	bound, _ := v.Bindings()
	for _, c := range a.currentConnectors() {
		if isBound(c, bound) {
			return true
		}
	}
	return false
}

// currentConnectors returns the installed connectors that can be read.
func (a *app) currentConnectors() []*spec.Connector {
	s, err := a.openStore()
	if err != nil {
		return nil
	}
	connectors, _ := s.Current()
	return connectors
}

func isBound(c *spec.Connector, bound []vault.Binding) bool {
	need := c.Credential()
	return need != nil && slices.ContainsFunc(bound, func(b vault.Binding) bool {
		return b.Connector == string(c.FQN) && spec.Kind(b.Kind) == need.Kind
	})
}
