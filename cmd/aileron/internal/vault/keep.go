package vault

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/unlock"
	"github.com/ALRubinger/aileron/vault/keeper"
)

type vaultKeepOptions struct {
	until     string
	recipient string
}

// newVaultKeepCommand returns the hidden command that vault unlock --for starts: it reads the vault's key from standard
// input, and holds it as [keeper.Serve] does. As every process of aileron it is not dumpable: see
// [protect.ProtectProcess].
func newVaultKeepCommand(a *cli.App) *cobra.Command {
	opts := &vaultKeepOptions{}
	cmd := &cobra.Command{
		Use:    "keep",
		Short:  "Hold the key of the vault",
		Hidden: true,
		Args:   cli.UsageArgs(cobra.NoArgs),
		RunE:   func(cmd *cobra.Command, _ []string) error { return opts.run(cmd.Context(), a) },
	}
	f := cmd.Flags()
	f.StringVar(&opts.until, "until", "", "when the key is forgotten, as RFC 3339")
	f.StringVar(&opts.recipient, "recipient", "", "public key of the vault")
	return cmd
}

func (o *vaultKeepOptions) run(ctx context.Context, a *cli.App) error {
	until, err := time.Parse(time.RFC3339Nano, o.until)
	if err != nil {
		return failure.Usagef("--until is not a time of RFC 3339")
	}
	home, err := a.Home()
	if err != nil {
		return err
	}
	v := a.VaultAt(home)
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	key, err := keeper.ReadKey(a.Stdin)
	if err != nil {
		return err
	}
	return keeper.Serve(ctx, key, keeper.Options{
		Home: home, Until: until,
		Current: func() bool {
			locked, err := v.LockState()
			recipient, readErr := v.Recipient()
			return err == nil && !locked && readErr == nil && recipient == o.recipient
		},
		Ready: func() { fmt.Fprintln(a.Stdout, unlock.KeeperReady) },
	})
}
