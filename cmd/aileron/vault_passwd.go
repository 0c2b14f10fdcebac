package main

import (
	"context"
	"errors"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/vault"
)

func vaultPasswd(ctx context.Context, a *app, file, newFile string) error {
	v, err := a.openVault(ctx, file)
	if err != nil {
		return err
	}
	fresh, err := newPassphrase(ctx, a, newFile)
	if err != nil {
		return err
	}
	if err := vault.CheckPassphrase(fresh); err != nil {
		return err
	}
	before, err := v.Digest(vault.Identity)
	if err != nil {
		return err
	}
	c := change{what: audit.ChangeVaultPasswd, before: before}
	if err := a.enact(ctx, c, func() error { return v.ChangePassphrase(fresh) }); err != nil {
		return err
	}
	a.sayf("aileron: the passphrase is changed")
	home, err := a.Home()
	if err != nil {
		return err
	}
	if vault.FromKeyring(home) != nil {
		return a.remember(fresh) // what it holds opens nothing any more
	}
	return nil
}

func newPassphrase(ctx context.Context, a *app, file string) ([]byte, error) {
	p := a.getenv("AILERON_VAULT_NEW_PASSPHRASE")
	switch {
	case file != "":
		return a.readPassphraseFile(file)
	case p != "":
		return []byte(p), nil
	case a.interactive():
		return a.promptPassphrase(ctx, true)
	}
	return nil, hint.New(errors.New("change the passphrase: there is no new one, and nobody to ask"), "pass --new-passphrase-file or set AILERON_VAULT_NEW_PASSPHRASE")
}
