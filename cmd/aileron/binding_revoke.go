package main

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/vault"
)

func newBindingRevokeCommand(a *app) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:     "revoke NAME",
		Short:   "Remove a binding; running sessions stop using it within a second",
		Example: "  aileron binding revoke bearer/aileron-connector-github/work --yes",
		Args:    usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return bindingRevoke(cmd.Context(), a, args[0], yes)
		},
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

func bindingRevoke(ctx context.Context, a *app, name string, yes bool) error {
	v, err := a.vaultOf()
	if err != nil {
		return err
	}
	b, err := v.Binding(name) // one that is broken is removed too
	if errors.Is(err, vault.ErrNotBound) || errors.Is(err, vault.ErrBadName) {
		return bindingError(err)
	}
	if !yes && a.interactive() {
		answer, err := a.promptLine("remove " + name + " and its secret? [y/N]")
		if err != nil {
			return err
		}
		if !strings.EqualFold(answer, "y") && !strings.EqualFold(answer, "yes") {
			return errors.New("not revoked: it was not confirmed")
		}
	}
	c := change{what: audit.ChangeBindingRevoke, about: audit.Row{ConnectorFQN: b.Connector, Binding: name}}
	if err := a.enact(ctx, c, func() error { return v.Revoke(name) }); err != nil {
		return bindingError(err)
	}
	a.sayf("aileron: %s is removed", name)
	return nil
}
