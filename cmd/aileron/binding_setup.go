package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/vault"
)

type bindingSetupOptions struct {
	secretOptions
	fqns     []string
	list     string       // file of CONNECTOR=SECRET
	secrets  []secretLine // its content; nil: it has not been read
	identity string
}

func newBindingSetupCommand(a *app) *cobra.Command {
	opts := &bindingSetupOptions{}
	cmd := &cobra.Command{
		Use:   "setup CONNECTOR...",
		Short: "Bind every credential that connectors declare",
		Long: "Bind the credential that each of the connectors declares. One secret is read, and is\n" +
			"bound to all of them; --secrets-file has one for each. Once there is a vault, no\n" +
			"passphrase is needed.",
		Example: `  aileron binding setup github --identity work --secret-file token.txt
  pass show work/github | aileron binding setup github --secret-stdin
  aileron binding setup --secrets-file secrets.txt`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.fqns = args
			if err := opts.check(); err != nil {
				return err
			}
			return opts.run(cmd.Context(), a)
		},
	}
	opts.register(cmd)
	f := cmd.Flags()
	f.StringVar(&opts.identity, "identity", "default", "name of this credential among several for one connector")
	f.StringVar(&opts.list, "secrets-file", "", listUsage)
	return cmd
}

// check returns an error unless the flags name connectors in one way, and secrets in one.
func (o *bindingSetupOptions) check() error {
	switch {
	case o.list != "" && (o.given() || o.username != ""):
		return usagef("--secrets-file has the secrets and user names: it excludes --secret-file, --secret-stdin, --username")
	case o.list != "" && len(o.fqns) > 0:
		return usagef("--secrets-file names the connectors: it excludes CONNECTOR")
	case o.list == "" && len(o.fqns) == 0:
		return usagef("binding setup needs a CONNECTOR or --secrets-file")
	}
	return o.secretOptions.check()
}

func (o *bindingSetupOptions) run(ctx context.Context, a *app) error {
	bound, err := o.bind(ctx, a)
	if !a.json || err != nil {
		return err
	}
	if len(o.fqns) == 1 {
		return a.printJSON(bound[0])
	}
	return a.printJSON(bound)
}

// bind makes the bindings that the flags ask for. Without --json it prints their names.
func (o *bindingSetupOptions) bind(ctx context.Context, a *app) ([]vault.Binding, error) {
	v, err := a.vaultOf()
	if err != nil {
		return nil, err
	}
	targets, err := o.targets(a, v)
	if err != nil || len(targets) == 0 {
		return []vault.Binding{}, err
	}
	if err := o.readSecret(ctx, a, targets); err != nil {
		return nil, err
	}
	if !v.Initialised() {
		_, err = a.createVault(ctx, v, o.passphraseFile)
	} else {
		v, err = a.sealingVault(ctx, o.passphraseFile)
	}
	if err != nil {
		return nil, err
	}
	return a.bindAll(ctx, v, targets)
}

// bindAll binds targets in their order, and prints the name of each. It stops at the first that fails.
func (a *app) bindAll(ctx context.Context, v *vault.Vault, targets []bindingTarget) (bound []vault.Binding, err error) {
	bound = []vault.Binding{}
	changes := a.newChanges()
	defer func() { err = changes.close(err) }()
	for _, t := range targets {
		about := audit.Row{ConnectorFQN: t.Connector, ConnectorVersion: t.version, Binding: t.Name}
		act := func() error { return v.Bind(t.Binding, t.secret) }
		err := changes.enact(ctx, change{what: audit.ChangeBindingSetup, about: about}, act)
		if errors.Is(err, vault.ErrExists) {
			return bound, boundAlready(err, t.Name)
		} else if err != nil {
			return bound, err
		}
		if !a.json {
			fmt.Fprintln(a.stdout, t.Name)
			continue
		}
		b, err := v.Binding(t.Name)
		if err != nil {
			return bound, err
		}
		bound = append(bound, b)
	}
	return bound, nil
}
