package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/vault"
)

type vaultInitOptions struct {
	passphraseFile string
	keyring        bool
}

func newVaultInitCommand(a *app) *cobra.Command {
	opts := &vaultInitOptions{}
	cmd := &cobra.Command{
		Use:     "init",
		Short:   "Create the vault, with a passphrase",
		Example: "  aileron vault init\n  aileron vault init --keyring",
		Args:    usageArgs(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return opts.run(cmd.Context(), a) },
	}
	passphraseFlag(cmd, &opts.passphraseFile)
	cmd.Flags().BoolVar(&opts.keyring, "keyring", false, "store the passphrase in the OS keyring")
	return cmd
}

func (o *vaultInitOptions) run(ctx context.Context, a *app) error {
	v, err := a.vaultOf()
	if err != nil {
		return err
	}
	if v.Initialised() {
		return hint.New(errors.New("create the vault: it exists already"), "change its passphrase with: aileron vault passwd")
	}
	p, err := a.createVault(ctx, v, o.passphraseFile)
	if err != nil || !o.keyring {
		return err
	}
	return a.keepInKeyring(p)
}

// createVault creates v with the passphrase that [app.passphrase] finds, and returns the passphrase.
func (a *app) createVault(ctx context.Context, v *vault.Vault, passphraseFile string) ([]byte, error) {
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
	a.infof("aileron: vault created. There is no recovery: without the passphrase every credential must be bound again")
	return p, nil
}
