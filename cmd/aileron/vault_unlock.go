package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/session"
	"github.com/ALRubinger/aileron/vault"
	"github.com/ALRubinger/aileron/vault/keeper"
)

type vaultUnlockOptions struct {
	passphraseFile string
	keyring        bool
	hold           time.Duration // how long a process holds the key; 0: none does
}

func newVaultUnlockCommand(a *app) *cobra.Command {
	opts := &vaultUnlockOptions{}
	cmd := &cobra.Command{
		Use:   "unlock",
		Short: "Unlock the vault for running sessions again, and with --for for later commands",
		Long: "Remove the mark of vault lock, and let running sessions open the vault again. With\n" +
			"--for, a process of yours holds the key in memory for that time, at most 24h, and\n" +
			"launch, run, proxy and binding need no passphrase. It ends at the time, at the\n" +
			"logout, and with vault lock. Your other programs can ask it for the key too; a\n" +
			"sandbox cannot.",
		Example: "  aileron vault unlock\n  aileron vault unlock --for 8h",
		Args:    usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if held := cmd.Flags().Changed("for"); held && (opts.hold < time.Second || opts.hold > keeper.MaxTime) {
				return usagef("--for is %v; it must be between 1s and 24h, such as 8h", opts.hold)
			}
			return opts.run(cmd.Context(), a)
		},
	}
	passphraseFlag(cmd, &opts.passphraseFile)
	cmd.Flags().BoolVar(&opts.keyring, "keyring", false, "store the passphrase in the OS keyring")
	cmd.Flags().DurationVar(&opts.hold, "for", 0, "hold the key in memory for this time, at most 24h, such as 8h")
	return cmd
}

func (o *vaultUnlockOptions) run(ctx context.Context, a *app) error {
	v, p, err := a.openVaultWith(ctx, o.passphraseFile)
	if err != nil {
		return err
	}
	until := time.Now().Add(o.hold).Truncate(time.Second)
	c := change{what: audit.ChangeVaultUnlock}
	if o.hold > 0 {
		c.about.Fields = map[string]any{"until": until.UTC().Format(time.RFC3339)}
	}
	if err := a.enact(ctx, c, func() error { return o.unlock(ctx, a, v, until) }); err != nil {
		return err
	}
	if o.keyring {
		if err := a.keepInKeyring(p); err != nil {
			return err
		}
	}
	if o.hold > 0 {
		a.infof("aileron: vault unlocked until %s; end that with: aileron vault lock", until.Format(time.DateTime))
	} else {
		a.infof("aileron: vault unlocked")
	}
	return a.unlockSessions(ctx, p)
}

// unlock removes the mark of vault lock, and has the key held if --for asks for that. If that fails, the mark is as
// before.
func (o *vaultUnlockOptions) unlock(ctx context.Context, a *app, v *vault.Vault, until time.Time) error {
	locked, err := v.LockState()
	if err != nil {
		return err
	}
	if err := v.SetLocked(false); err != nil || o.hold == 0 {
		return err
	}
	err = a.keepKey(ctx, v, until)
	if err != nil && locked {
		err = errors.Join(err, v.SetLocked(true))
	}
	return err
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
