package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/vault"
)

func newBindingCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "binding",
		Short: "Bind credentials to connectors",
		Args:  cobra.ArbitraryArgs,
		RunE:  subcommandNeeded,
	}
	cmd.AddCommand(newBindingSetupCommand(a), newBindingListCommand(a), newBindingInspectCommand(a), newBindingRebindCommand(a), newBindingRevokeCommand(a))
	return cmd
}

func newBindingListCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List what is bound",
		Example: "  aileron binding list --json",
		Args:    usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			v, err := a.vaultOf()
			if err != nil {
				return err
			}
			all, err := v.Bindings()
			if errors.Is(err, vault.ErrNotInitialised) {
				err = nil
			}
			if err != nil && len(all) == 0 {
				return err
			}
			// What can be read is listed even when something else cannot.
			return errors.Join(printBindings(a, all), err)
		},
	}
}

func printBindings(a *app, all []vault.Binding) error {
	if a.json {
		return a.printJSON(append([]vault.Binding{}, all...)) // [] and not null
	}
	if len(all) == 0 {
		a.sayf("nothing is bound; bind a credential with: aileron binding setup FQN")
	}
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	for _, b := range all {
		fmt.Fprintf(w, "%s\t%s\t%s\n", b.Name, b.Connector, b.Updated.Format(time.DateOnly))
	}
	return w.Flush()
}

// bindingError adds the mend that there is for a name that leads nowhere.
func bindingError(err error) error {
	switch {
	case errors.Is(err, vault.ErrNotInitialised):
		return hint.New(err, "aileron binding setup FQN makes it and binds a credential")
	case errors.Is(err, vault.ErrNotBound), errors.Is(err, vault.ErrBadName):
		return hint.New(err, "aileron binding list shows what is bound")
	}
	return err
}

func newBindingInspectCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "inspect NAME",
		Short:   "Show one binding, never its secret",
		Example: "  aileron binding inspect bearer/aileron-connector-github/work",
		Args:    usageArgs(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			v, err := a.vaultOf()
			if err != nil {
				return err
			}
			b, err := v.Binding(args[0])
			if err != nil {
				return bindingError(err)
			}
			if a.json {
				return a.printJSON(b)
			}
			fmt.Fprintf(a.stdout, "name       %s\nconnector  %s\nkind       %s\nidentity   %s\n", b.Name, b.Connector, b.Kind, b.Identity)
			if b.Username != "" {
				fmt.Fprintf(a.stdout, "username   %s\n", b.Username)
			}
			fmt.Fprintf(a.stdout, "created    %s\nupdated    %s\n", b.Created.Format(time.RFC3339), b.Updated.Format(time.RFC3339))
			return nil
		},
	}
}

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
	if opts.username != "" && b.Kind != "basic" {
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
