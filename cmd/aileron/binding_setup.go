package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/store"
	"github.com/ALRubinger/aileron/vault"
)

type bindingSetupOptions struct {
	secretOptions
	fqn      string
	identity string
}

func newBindingSetupCommand(a *app) *cobra.Command {
	opts := &bindingSetupOptions{}
	cmd := &cobra.Command{
		Use:   "setup FQN",
		Short: "Bind every credential that a connector declares",
		Example: `  aileron binding setup github://alrubinger/aileron-connector-github --identity work --secret-file token.txt
  pass show work/github | aileron binding setup github://alrubinger/aileron-connector-github --secret-stdin`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.fqn = args[0]
			if err := opts.check(); err != nil {
				return err
			}
			return opts.run(cmd.Context(), a)
		},
	}
	opts.register(cmd)
	cmd.Flags().StringVar(&opts.identity, "identity", "default", "name of this credential among several for one connector")
	return cmd
}

// connector returns the installed connector of that name.
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
		return nil, store.Hint(fmt.Errorf("find the connector %s: %w", fqn, errors.Join(faults...)))
	}
	return nil, hint.New(fmt.Errorf("find the connector %s: %w", fqn, store.ErrNotInstalled),
		"install it with: aileron connector install DIR")
}

func (o *bindingSetupOptions) run(ctx context.Context, a *app) error {
	c, err := a.connector(o.fqn)
	if err != nil {
		return err
	}
	if err := o.validate(a, c); err != nil {
		return err
	}
	v, err := a.vaultOf()
	if err != nil {
		return err
	}
	b, err := o.binding(a, v, c)
	if err != nil {
		return err
	}
	secret, err := o.read(ctx, a, b.Kind+" secret for "+o.fqn)
	if err != nil {
		return err
	}
	if !v.Initialised() {
		_, err = a.createVault(ctx, v, o.passphraseFile)
	} else {
		v, err = a.openVault(ctx, o.passphraseFile) // to add a secret takes the passphrase, as to use one does
	}
	if err != nil {
		return err
	}
	about := audit.Row{ConnectorFQN: o.fqn, ConnectorVersion: c.Version, Binding: b.Name}
	err = a.enact(ctx, change{what: audit.ChangeBindingSetup, about: about}, func() error { return v.Bind(b, secret) })
	if errors.Is(err, vault.ErrExists) {
		return boundAlready(err, b.Name)
	} else if err != nil {
		return err
	}
	if !a.json {
		fmt.Fprintln(a.stdout, b.Name)
		return nil
	}
	if b, err = v.Binding(b.Name); err != nil {
		return err
	}
	return a.printJSON(b)
}

// validate returns an error unless the flags fit the credential that the connector declares.
func (o *bindingSetupOptions) validate(a *app, c *spec.Connector) error {
	need := c.Credential()
	switch {
	case need == nil:
		return fmt.Errorf("bind a credential to %s: it needs none", c.FQN)
	case need.Kind.HasUsername() && o.username == "" && (o.given() || !a.interactive()):
		return usagef("a %s credential needs --username", need.Kind)
	case !need.Kind.HasUsername() && o.username != "":
		return usagef("--username is for credentials of kind basic; %s needs %s", c.FQN, need.Kind)
	case need.Kind.NeedsLogin() && !o.given():
		return hint.New(fmt.Errorf("bind an %s credential to %s: this release opens no browser", need.Kind, c.FQN),
			"give an access token with --secret-file or --secret-stdin")
	}
	return nil
}

// binding returns a new binding for the connector. It asks for the username where the kind has one.
func (o *bindingSetupOptions) binding(a *app, v *vault.Vault, c *spec.Connector) (vault.Binding, error) {
	b := vault.Binding{
		Kind: string(c.Credential().Kind), Connector: string(c.FQN), Identity: o.identity, Username: o.username,
	}
	var err error
	if b.Name, err = v.BindingName(b.Kind, b.Connector, o.identity); errors.Is(err, vault.ErrBadName) {
		return b, usageError{err}
	} else if err != nil {
		return b, err
	}
	if _, err := v.Binding(b.Name); err == nil {
		return b, boundAlready(fmt.Errorf("bind %s: it is already bound", b.Name), b.Name)
	}
	if spec.Kind(b.Kind).HasUsername() && b.Username == "" {
		if b.Username, err = a.promptLine("user name for " + b.Connector + ":"); err != nil {
			return b, err
		}
	}
	if err := b.Check(); err != nil {
		return b, usageError{err}
	}
	return b, nil
}

func boundAlready(err error, name string) error {
	return hint.New(err, "replace its secret with: aileron binding rebind %s", name)
}
