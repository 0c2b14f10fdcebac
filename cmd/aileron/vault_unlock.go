package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/session"
)

type vaultUnlockOptions struct {
	passphraseFile string
	keyring        bool
}

func newVaultUnlockCommand(a *app) *cobra.Command {
	opts := &vaultUnlockOptions{}
	cmd := &cobra.Command{
		Use:     "unlock",
		Short:   "Unlock the vault for running sessions again",
		Example: "  aileron vault unlock",
		Args:    usageArgs(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return opts.run(cmd.Context(), a) },
	}
	passphraseFlag(cmd, &opts.passphraseFile)
	cmd.Flags().BoolVar(&opts.keyring, "keyring", false, "store the passphrase in the OS keyring")
	return cmd
}

func (o *vaultUnlockOptions) run(ctx context.Context, a *app) error {
	v, p, err := a.openVaultWith(ctx, o.passphraseFile)
	if err != nil {
		return err
	}
	if err := a.enact(ctx, change{what: audit.ChangeVaultUnlock}, func() error { return v.SetLocked(false) }); err != nil {
		return err
	}
	if o.keyring {
		if err := a.keepInKeyring(p); err != nil {
			return err
		}
	}
	a.infof("aileron: vault unlocked")
	return a.unlockSessions(ctx, p)
}

// unlockSessions passes the passphrase to every running session: a locked session has forgotten it.
func (a *app) unlockSessions(ctx context.Context, passphrase []byte) error {
	home, err := a.Home()
	if err != nil {
		return err
	}
	for _, id := range session.Running(home) {
		if err := session.Unlock(ctx, home, id, passphrase); err != nil {
			a.infof("aileron: warning: session %s did not unlock: %v", id, err)
		}
	}
	return nil
}
