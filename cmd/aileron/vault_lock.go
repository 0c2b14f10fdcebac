package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/vault"
)

type vaultLockOptions struct {
	passphraseFile string // accepted as by the other commands of the vault, and not used
	keyring        bool
}

func newVaultLockCommand(a *app) *cobra.Command {
	opts := &vaultLockOptions{}
	cmd := &cobra.Command{
		Use:     "lock",
		Short:   "Lock the vault: within a second, running sessions inject no credential",
		Example: "  aileron vault lock",
		Args:    usageArgs(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return opts.run(cmd.Context(), a) },
	}
	passphraseFlag(cmd, &opts.passphraseFile)
	cmd.Flags().BoolVar(&opts.keyring, "keyring", false, "remove the passphrase from the OS keyring too")
	return cmd
}

// run leaves the mark that every session checks, and ends the process that holds the key. It needs no passphrase: an
// owner in a hurry may not have it at hand.
func (o *vaultLockOptions) run(ctx context.Context, a *app) error {
	v, err := a.vaultOf()
	if err != nil {
		return err
	}
	if !v.Initialised() {
		return notInitialised("lock the vault")
	}
	if err := a.enact(ctx, change{what: audit.ChangeVaultLock}, func() error { return v.SetLocked(true) }); err != nil {
		return err
	}
	// After the mark: what still asks for the key from now on is refused.
	if err := a.endKeeper(ctx); err != nil {
		return err
	}
	a.infof("aileron: vault locked. Running sessions inject no credential until: aileron vault unlock")
	if !o.keyring {
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
