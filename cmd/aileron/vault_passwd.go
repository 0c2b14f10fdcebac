package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/vault"
)

type vaultPasswdOptions struct {
	passphraseFile    string
	newPassphraseFile string
}

func newVaultPasswdCommand(a *app) *cobra.Command {
	opts := &vaultPasswdOptions{}
	cmd := &cobra.Command{
		Use:     "passwd",
		Short:   "Change the passphrase",
		Example: "  aileron vault passwd",
		Args:    usageArgs(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return opts.run(cmd.Context(), a) },
	}
	passphraseFlag(cmd, &opts.passphraseFile)
	cmd.Flags().StringVar(&opts.newPassphraseFile, "new-passphrase-file", "",
		"file that holds the new passphrase (or AILERON_VAULT_NEW_PASSPHRASE)")
	return cmd
}

func (o *vaultPasswdOptions) run(ctx context.Context, a *app) error {
	v, _, err := a.openVaultWith(ctx, o.passphraseFile) // a held key is no proof of who changes the passphrase
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
	c := change{what: audit.ChangeVaultPasswd, before: before}
	if err := a.enact(ctx, c, func() error { return v.ChangePassphrase(fresh) }); err != nil {
		return err
	}
	a.infof("aileron: passphrase changed")
	home, err := a.Home()
	if err != nil {
		return err
	}
	switch _, err := vault.FromKeyring(home); {
	case keyringFails(err):
		a.infof("aileron: warning: %v; if it holds the old passphrase, store the new one: aileron vault unlock --keyring",
			err)
	case err == nil:
		return a.keepInKeyring(fresh) // the old one, which opens nothing any more, is replaced
	}
	return nil
}

func (o *vaultPasswdOptions) newPassphrase(ctx context.Context, a *app) ([]byte, error) {
	p := a.getenv("AILERON_VAULT_NEW_PASSPHRASE")
	switch {
	case o.newPassphraseFile != "":
		return a.readPassphraseFile(o.newPassphraseFile)
	case p != "":
		return []byte(p), nil
	case a.interactive():
		return a.promptPassphrase(ctx, true)
	}
	return nil, hint.New(errors.New("change the passphrase: no new one was given, and there is no terminal to ask on"),
		"pass --new-passphrase-file or set AILERON_VAULT_NEW_PASSPHRASE")
}
