package binding

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/bindings"
	"github.com/ALRubinger/aileron/internal/failure"
)

type bindingRevokeOptions struct {
	name  string
	yes   bool
	login bindings.Login // how its service is told

	passphraseFile string // to open a login, which its service is told
	upstream       cli.UpstreamOptions
}

func newBindingRevokeCommand(a *cli.App) *cobra.Command {
	opts := &bindingRevokeOptions{}
	cmd := &cobra.Command{
		Use:     "revoke NAME",
		Short:   "Remove a binding, and end its login; running sessions stop using it within a second",
		Example: "  aileron binding revoke bearer/aileron-connector-github/work --yes",
		Args:    cli.UsageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.name = args[0]
			return opts.run(cmd.Context(), a)
		},
	}
	cli.PassphraseFlag(cmd, &opts.passphraseFile)
	reachService(cmd, a, &opts.login, &opts.upstream)
	cmd.Flags().BoolVarP(&opts.yes, "yes", "y", false, "do not ask for confirmation")
	return cmd
}

func (o *bindingRevokeOptions) run(ctx context.Context, a *cli.App) error {
	err := bindings.Revoke(ctx, &a.Unlocker, o.name, o.passphraseFile, o.login, func() error {
		if o.yes || !a.Interactive() {
			return nil
		}
		yes, err := a.Agreed("remove " + o.name + " and its secret?")
		if err == nil && !yes {
			err = failure.Declined("not revoked: it was not confirmed")
		}
		return err
	})
	if err == nil {
		a.Infof("aileron: revoked %s", o.name)
	}
	return err
}
