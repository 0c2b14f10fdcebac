package binding

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/changes"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/vault"
)

type bindingRevokeOptions struct {
	name string
	yes  bool
}

func newBindingRevokeCommand(a *cli.App) *cobra.Command {
	opts := &bindingRevokeOptions{}
	cmd := &cobra.Command{
		Use:     "revoke NAME",
		Short:   "Remove a binding; running sessions stop using it within a second",
		Example: "  aileron binding revoke bearer/aileron-connector-github/work --yes",
		Args:    cli.UsageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.name = args[0]
			return opts.run(cmd.Context(), a)
		},
	}
	cmd.Flags().BoolVarP(&opts.yes, "yes", "y", false, "do not ask for confirmation")
	return cmd
}

func (o *bindingRevokeOptions) run(ctx context.Context, a *cli.App) error {
	v, err := a.VaultOf()
	if err != nil {
		return err
	}
	b, err := v.Binding(o.name) // a broken one is removed too
	if errors.Is(err, vault.ErrNotBound) || errors.Is(err, vault.ErrBadName) {
		return bindingError(err)
	}
	if !o.yes && a.Interactive() {
		line, err := a.PromptLine("remove " + o.name + " and its secret? [y/N]")
		if err != nil {
			return err
		}
		if !strings.EqualFold(line, "y") && !strings.EqualFold(line, "yes") {
			return failure.Declined("not revoked: it was not confirmed")
		}
	}
	c := changes.Change{What: audit.ChangeBindingRevoke, About: audit.Row{ConnectorFQN: b.Connector, Binding: o.name}}
	if err := a.Enact(ctx, c, func() error { return v.Revoke(o.name) }); err != nil {
		return bindingError(err)
	}
	a.Infof("aileron: revoked %s", o.name)
	return nil
}
