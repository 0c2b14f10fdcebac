package vault

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/hint"
)

type vaultInitOptions struct {
	PassphraseFile string
	keyring        bool
}

func newVaultInitCommand(a *cli.App) *cobra.Command {
	opts := &vaultInitOptions{}
	cmd := &cobra.Command{
		Use:     "init",
		Short:   "Create the vault, with a passphrase",
		Example: "  aileron vault init\n  aileron vault init --keyring",
		Args:    cli.UsageArgs(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return opts.run(cmd.Context(), a) },
	}
	cli.PassphraseFlag(cmd, &opts.PassphraseFile)
	cmd.Flags().BoolVar(&opts.keyring, "keyring", false, "store the passphrase in the OS keyring")
	return cmd
}

func (o *vaultInitOptions) run(ctx context.Context, a *cli.App) error {
	v, err := a.VaultOf()
	if err != nil {
		return err
	}
	if v.Initialised() {
		return hint.New(errors.New("create the vault: it exists already"), "change its passphrase with: aileron vault passwd")
	}
	p, err := a.CreateVault(ctx, v, o.PassphraseFile)
	if err != nil || !o.keyring {
		return err
	}
	return a.KeepInKeyring(p)
}
