package binding

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/changes"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/spec"
)

type bindingRebindOptions struct {
	cli.SecretOptions
	name string
}

func newBindingRebindCommand(a *cli.App) *cobra.Command {
	opts := &bindingRebindOptions{}
	cmd := &cobra.Command{
		Use:     "rebind NAME",
		Short:   "Replace a binding's secret; running sessions use the new one within a second",
		Example: "  aileron binding rebind bearer/aileron-connector-github/work --secret-file token.txt",
		Args:    cli.UsageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.name = args[0]
			if err := opts.Check(); err != nil {
				return err
			}
			return opts.run(cmd.Context(), a)
		},
	}
	opts.Register(cmd)
	return cmd
}

func (o *bindingRebindOptions) run(ctx context.Context, a *cli.App) error {
	v, err := a.VaultOf()
	if err != nil {
		return err
	}
	b, err := v.Binding(o.name)
	if err != nil {
		return bindingError(err)
	}
	if o.Username != "" && !spec.Kind(b.Kind).HasUsername() {
		return failure.Usagef("--username is for credentials of kind basic; %s is %s", o.name, b.Kind)
	}
	secret, err := o.Read(ctx, a, b.Kind+" secret for "+b.Connector)
	if err != nil {
		return err
	}
	if v, err = a.SealingVault(ctx, o.PassphraseFile); err != nil {
		return err
	}
	before, err := v.Digest(o.name)
	if err != nil {
		return err
	}
	about := audit.Row{ConnectorFQN: b.Connector, Binding: o.name}
	c := changes.Change{What: audit.ChangeBindingRebind, About: about, Before: before}
	if err := a.Enact(ctx, c, func() error { return v.Rebind(o.name, o.Username, secret) }); err != nil {
		return bindingError(err)
	}
	a.Infof("aileron: replaced the secret of %s", o.name)
	return nil
}
