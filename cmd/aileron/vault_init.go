package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/vault"
)

func vaultInit(ctx context.Context, a *app, file string, keyring bool) error {
	v, err := a.vaultOf()
	if err != nil {
		return err
	}
	if v.Initialised() {
		return hint.New(errors.New("make the vault: it is there already"), "change its passphrase with: aileron vault passwd")
	}
	p, err := a.makeVault(ctx, v, file)
	if err != nil || !keyring {
		return err
	}
	return a.remember(p)
}

func (a *app) remember(passphrase []byte) error {
	home, err := a.Home()
	if err != nil {
		return err
	}
	if err := vault.ToKeyring(home, passphrase); err != nil {
		return hint.New(fmt.Errorf("keep the passphrase in the OS keyring: %w", err), "this host may have none; use AILERON_VAULT_PASSPHRASE or --passphrase-file")
	}
	return nil
}

// makeVault makes the vault of the home, with a passphrase that is found or
// asked for.
func (a *app) makeVault(ctx context.Context, v *vault.Vault, passphraseFile string) ([]byte, error) {
	p, err := a.passphrase(ctx, passphraseFile, true)
	if err != nil {
		return nil, err
	}
	if err := vault.CheckPassphrase(p); err != nil {
		return nil, err
	}
	if err := a.enact(ctx, change{what: audit.ChangeVaultInit}, func() error { return v.Init(p) }); err != nil {
		return nil, err
	}
	a.sayf("aileron: the vault is made; whoever forgets its passphrase has to bind every credential again")
	return p, nil
}
