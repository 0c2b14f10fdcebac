package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/vault"
)

// vaultLock leaves the mark that every session sees. It asks for nothing:
// whoever is in a hurry must not have to remember a passphrase.
func vaultLock(ctx context.Context, a *app, keyring bool) error {
	v, err := a.vaultOf()
	if err != nil {
		return err
	}
	if !v.Initialised() {
		return hint.New(errors.New("lock the vault: there is none yet"), "make one with: aileron vault init")
	}
	if err := a.enact(ctx, change{what: audit.ChangeVaultLock}, func() error { return v.SetLocked(true) }); err != nil {
		return err
	}
	a.sayf("aileron: the vault is locked; running sessions inject nothing any more; aileron vault unlock opens it")
	if !keyring {
		return nil
	}
	home, err := a.Home()
	if err != nil {
		return err
	}
	if err := vault.ForgetKeyring(home); err != nil {
		return fmt.Errorf("remove the passphrase from the OS keyring: %w", err)
	}
	return nil
}
