package vault

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/changes"
	"github.com/ALRubinger/aileron/internal/home"
	"github.com/ALRubinger/aileron/vault"
)

type vaultLockOptions struct {
	PassphraseFile string // accepted as by the other commands of the vault, and not used
	keyring        bool
}

func newVaultLockCommand(a *cli.App) *cobra.Command {
	opts := &vaultLockOptions{}
	cmd := &cobra.Command{
		Use:     "lock",
		Short:   "Lock the vault: within a second, running sessions inject no credential",
		Example: "  aileron vault lock",
		Args:    cli.UsageArgs(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return opts.run(cmd.Context(), a) },
	}
	cli.PassphraseFlag(cmd, &opts.PassphraseFile)
	cmd.Flags().BoolVar(&opts.keyring, "keyring", false, "remove the passphrase from the OS keyring too")
	return cmd
}

// run leaves the mark that every session checks, and ends the process that holds the key. It needs no passphrase: an
// owner in a hurry may not have it at hand.
func (o *vaultLockOptions) run(ctx context.Context, a *cli.App) error {
	v, err := a.VaultOf()
	if err != nil {
		return err
	}
	if !v.Initialised() {
		return home.NotInitialised("lock the vault")
	}
	if err := a.Enact(ctx, changes.Change{What: audit.ChangeVaultLock},
		func() error { return v.SetLocked(true) }); err != nil {
		return err
	}
	// After the mark: what still asks for the key from now on is refused.
	if err := a.EndKeeper(ctx); err != nil {
		return err
	}
	a.Infof("aileron: vault locked. Running sessions inject no credential until: aileron vault unlock")
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
