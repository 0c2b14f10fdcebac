package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/spec"
)

type bindingRebindOptions struct {
	secretOptions
	name string
}

func newBindingRebindCommand(a *app) *cobra.Command {
	opts := &bindingRebindOptions{}
	cmd := &cobra.Command{
		Use:     "rebind NAME",
		Short:   "Replace a binding's secret; running sessions use the new one within a second",
		Example: "  aileron binding rebind bearer/aileron-connector-github/work --secret-file token.txt",
		Args:    usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.name = args[0]
			if err := opts.check(); err != nil {
				return err
			}
			return opts.run(cmd.Context(), a)
		},
	}
	opts.register(cmd)
	return cmd
}

func (o *bindingRebindOptions) run(ctx context.Context, a *app) error {
	v, err := a.vaultOf()
	if err != nil {
		return err
	}
	b, err := v.Binding(o.name)
	if err != nil {
		return bindingError(err)
	}
	if o.username != "" && !spec.Kind(b.Kind).HasUsername() {
		return usagef("--username is for credentials of kind basic; %s is %s", o.name, b.Kind)
	}
	secret, err := o.read(ctx, a, b.Kind+" secret for "+b.Connector)
	if err != nil {
		return err
	}
	if v, err = a.sealingVault(ctx, o.passphraseFile); err != nil {
		return err
	}
	before, err := v.Digest(o.name)
	if err != nil {
		return err
	}
	about := audit.Row{ConnectorFQN: b.Connector, Binding: o.name}
	c := change{what: audit.ChangeBindingRebind, about: about, before: before}
	if err := a.enact(ctx, c, func() error { return v.Rebind(o.name, o.username, secret) }); err != nil {
		return bindingError(err)
	}
	a.infof("aileron: replaced the secret of %s", o.name)
	return nil
}
