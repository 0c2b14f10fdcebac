package vault

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/changes"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/session"
	"github.com/ALRubinger/aileron/vault"
	"github.com/ALRubinger/aileron/vault/keeper"
)

type vaultUnlockOptions struct {
	PassphraseFile string
	keyring        bool
	hold           time.Duration // how long a process holds the key; 0: none does
}

func newVaultUnlockCommand(a *cli.App) *cobra.Command {
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
		Args:    cli.UsageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if held := cmd.Flags().Changed("for"); held && (opts.hold < time.Second || opts.hold > keeper.MaxTime) {
				return failure.Usagef("--for is %v; it must be between 1s and 24h, such as 8h", opts.hold)
			}
			return opts.run(cmd.Context(), a)
		},
	}
	cli.PassphraseFlag(cmd, &opts.PassphraseFile)
	cmd.Flags().BoolVar(&opts.keyring, "keyring", false, "store the passphrase in the OS keyring")
	cmd.Flags().DurationVar(&opts.hold, "for", 0, "hold the key in memory for this time, at most 24h, such as 8h")
	return cmd
}

func (o *vaultUnlockOptions) run(ctx context.Context, a *cli.App) error {
	v, p, err := a.OpenVaultWith(ctx, o.PassphraseFile)
	if err != nil {
		return err
	}
	until := time.Now().Add(o.hold).Truncate(time.Second)
	c := changes.Change{What: audit.ChangeVaultUnlock}
	if o.hold > 0 {
		c.About.Fields = map[string]any{"until": until.UTC().Format(time.RFC3339)}
	}
	if err := a.Enact(ctx, c, func() error { return o.unlock(ctx, a, v, until) }); err != nil {
		return err
	}
	if o.keyring {
		if err := a.KeepInKeyring(p); err != nil {
			return err
		}
	}
	if o.hold > 0 {
		a.Infof("aileron: vault unlocked until %s; end that with: aileron vault lock", until.Format(time.DateTime))
	} else {
		a.Infof("aileron: vault unlocked")
	}
	return unlockSessions(ctx, a, p)
}

// unlock removes the mark of vault lock, and has the key held if --for asks for that. If that fails, the mark is as
// before.
func (o *vaultUnlockOptions) unlock(ctx context.Context, a *cli.App, v *vault.Vault, until time.Time) error {
	locked, err := v.LockState()
	if err != nil {
		return err
	}
	if err := v.SetLocked(false); err != nil || o.hold == 0 {
		return err
	}
	err = a.KeepKey(ctx, v, until)
	if err != nil && locked {
		err = errors.Join(err, v.SetLocked(true))
	}
	return err
}

// unlockSessions passes the passphrase to every running session: a locked session has forgotten it.
func unlockSessions(ctx context.Context, a *cli.App, passphrase []byte) error {
	home, err := a.Home()
	if err != nil {
		return err
	}
	for _, id := range session.Running(home) {
		if err := session.Unlock(ctx, home, id, passphrase); err != nil {
			a.Infof("aileron: warning: session %s did not unlock: %v", id, err)
		}
	}
	return nil
}
