package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/spec"
)

func newBindingRebindCommand(a *app) *cobra.Command {
	opts := &secretOptions{}
	cmd := &cobra.Command{
		Use:     "rebind NAME",
		Short:   "Replace a binding's secret; running sessions use the new one within a second",
		Example: "  aileron binding rebind bearer/aileron-connector-github/work --secret-file token.txt",
		Args:    usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := opts.check(); err != nil {
				return err
			}
			return bindingRebind(cmd.Context(), a, opts, args[0])
		},
	}
	opts.register(cmd)
	return cmd
}

func bindingRebind(ctx context.Context, a *app, opts *secretOptions, name string) error {
	v, err := a.vaultOf()
	if err != nil {
		return err
	}
	b, err := v.Binding(name)
	if err != nil {
		return bindingError(err)
	}
	if opts.username != "" && !spec.Kind(b.Kind).HasUsername() {
		return usagef("--username is for credentials of kind basic; %s is %s", name, b.Kind)
	}
	secret, err := opts.read(ctx, a, b.Kind+" secret for "+b.Connector)
	if err != nil {
		return err
	}
	if v, err = a.openVault(ctx, opts.passphraseFile); err != nil {
		return err // whoever replaces a secret must be who may use it
	}
	before, err := v.Digest(name)
	if err != nil {
		return err
	}
	c := change{what: audit.ChangeBindingRebind, about: audit.Row{ConnectorFQN: b.Connector, Binding: name}, before: before}
	if err := a.enact(ctx, c, func() error { return v.Rebind(name, opts.username, secret) }); err != nil {
		return bindingError(err)
	}
	a.sayf("aileron: %s has its new secret", name)
	return nil
}
