package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/store"
	"github.com/ALRubinger/aileron/vault"
)

func newBindingSetupCommand(a *app) *cobra.Command {
	opts := &secretOptions{}
	identity := "default"
	cmd := &cobra.Command{
		Use:   "setup FQN",
		Short: "Bind every credential that a connector declares",
		Example: `  aileron binding setup github://alrubinger/aileron-connector-github --identity work --secret-file token.txt
  pass show work/github | aileron binding setup github://alrubinger/aileron-connector-github --secret-stdin`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := opts.check(); err != nil {
				return err
			}
			return bindingSetup(cmd.Context(), a, opts, args[0], identity)
		},
	}
	opts.register(cmd)
	cmd.Flags().StringVar(&identity, "identity", identity, "whose credential it is, when there are several")
	return cmd
}

// connector finds the installed connector of that name.
func (a *app) connector(fqn string) (*spec.Connector, error) {
	if _, err := spec.ParseFQN(fqn); err != nil {
		return nil, usageError{err}
	}
	s, err := a.openStore()
	if err != nil {
		return nil, err
	}
	current, faults := s.Current()
	for _, c := range current {
		if string(c.FQN) == fqn {
			return c, nil
		}
	}
	if len(faults) > 0 {
		return nil, hint(fmt.Errorf("find the connector %s: %w", fqn, errors.Join(faults...)), "install it again")
	}
	return nil, hint(fmt.Errorf("find the connector %s: %w", fqn, store.ErrNotInstalled), "install it with: aileron connector install DIR")
}

func bindingSetup(ctx context.Context, a *app, opts *secretOptions, fqn, identity string) error {
	c, err := a.connector(fqn)
	if err != nil {
		return err
	}
	need := c.Credential()
	if need == nil {
		return fmt.Errorf("bind a credential to %s: it needs none", fqn)
	}
	if need.Kind == "basic" && opts.username == "" && (opts.given() || !a.interactive()) {
		return usagef("a basic credential needs --username")
	}
	if need.Kind != "basic" && opts.username != "" {
		return usagef("--username is for credentials of kind basic; %s needs %s", fqn, need.Kind)
	}
	if need.Kind == "oauth2" && !opts.given() {
		return hint(fmt.Errorf("bind an oauth2 credential to %s: this release opens no browser", fqn), "give an access token with --secret-file or --secret-stdin")
	}
	v, err := a.vaultOf()
	if err != nil {
		return err
	}
	name, err := v.BindingName(need.Kind, fqn, identity)
	if errors.Is(err, vault.ErrBadName) {
		return usageError{err}
	}
	if err != nil {
		return err
	}
	bound := func(err error) error {
		return hint(err, "replace its secret with: aileron binding rebind %s", name)
	}
	if _, err := v.Binding(name); err == nil {
		return bound(fmt.Errorf("bind %s: it is bound already", name))
	}
	if need.Kind == "basic" && opts.username == "" {
		if opts.username, err = a.promptLine("user name for " + fqn + ":"); err != nil {
			return err
		}
	}
	b := vault.Binding{Name: name, Kind: need.Kind, Connector: fqn, Identity: identity, Username: opts.username}
	if err := b.Check(); err != nil {
		return usageError{err}
	}
	secret, err := opts.read(ctx, a, need.Kind+" secret for "+fqn)
	if err != nil {
		return err
	}
	if !v.Initialised() {
		_, err = a.makeVault(ctx, v, opts.passphraseFile)
	} else {
		v, err = a.openVault(ctx, opts.passphraseFile) // whoever binds must be who can unbind
	}
	if err != nil {
		return err
	}
	if err := v.Bind(b, secret); errors.Is(err, vault.ErrExists) {
		return bound(err)
	} else if err != nil {
		return err
	}
	a.record(ctx, audit.Row{Event: audit.EventBindingCreated, ConnectorFQN: fqn, ConnectorVersion: c.Version, Binding: name})
	if a.json {
		b, err = v.Binding(name)
		if err != nil {
			return err
		}
		return a.printJSON(b)
	}
	fmt.Fprintln(a.stdout, name)
	return nil
}
