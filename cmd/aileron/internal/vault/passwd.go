package vault

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/changes"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/unlock"
	"github.com/ALRubinger/aileron/vault"
)

type vaultPasswdOptions struct {
	PassphraseFile    string
	newPassphraseFile string
}

func newVaultPasswdCommand(a *cli.App) *cobra.Command {
	opts := &vaultPasswdOptions{}
	cmd := &cobra.Command{
		Use:     "passwd",
		Short:   "Change the passphrase",
		Example: "  aileron vault passwd",
		Args:    cli.UsageArgs(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return opts.run(cmd.Context(), a) },
	}
	cli.PassphraseFlag(cmd, &opts.PassphraseFile)
	cmd.Flags().StringVar(&opts.newPassphraseFile, "new-passphrase-file", "",
		"file that holds the new passphrase (or AILERON_VAULT_NEW_PASSPHRASE)")
	return cmd
}

func (o *vaultPasswdOptions) run(ctx context.Context, a *cli.App) error {
	v, _, err := a.OpenVaultWith(ctx, o.PassphraseFile) // a held key is no proof of who changes the passphrase
	if err != nil {
		return err
	}
	fresh, err := o.newPassphrase(ctx, a)
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
	c := changes.Change{What: audit.ChangeVaultPasswd, Before: before}
	if err := a.Enact(ctx, c, func() error { return v.ChangePassphrase(fresh) }); err != nil {
		return err
	}
	a.Infof("aileron: passphrase changed")
	home, err := a.Home()
	if err != nil {
		return err
	}
	switch _, err := vault.FromKeyring(home); {
	case unlock.KeyringFails(err):
		a.Infof("aileron: warning: %v; if it holds the old passphrase, store the new one: aileron vault unlock --keyring",
			err)
	case err == nil:
		return a.KeepInKeyring(fresh) // the old one, which opens nothing any more, is replaced
	}
	return nil
}

func (o *vaultPasswdOptions) newPassphrase(ctx context.Context, a *cli.App) ([]byte, error) {
	p := a.Getenv("AILERON_VAULT_NEW_PASSPHRASE")
	switch {
	case o.newPassphraseFile != "":
		return a.ReadPassphraseFile(o.newPassphraseFile)
	case p != "":
		return []byte(p), nil
	case a.Interactive():
		return a.PromptPassphrase(ctx, true)
	}
	return nil, hint.New(errors.New("change the passphrase: no new one was given, and there is no terminal to ask on"),
		"pass --new-passphrase-file or set AILERON_VAULT_NEW_PASSPHRASE")
}
