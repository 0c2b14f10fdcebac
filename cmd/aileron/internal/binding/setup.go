package binding

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/changes"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/vault"
)

type BindingSetupOptions struct {
	cli.SecretOptions
	Fqns     []string
	List     string       // file of CONNECTOR=SECRET
	Secrets  []secretLine // its content; nil: it has not been read
	Identity string
}

func newBindingSetupCommand(a *cli.App) *cobra.Command {
	opts := &BindingSetupOptions{}
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
			opts.Fqns = args
			if err := opts.check(); err != nil {
				return err
			}
			return opts.run(cmd.Context(), a)
		},
	}
	opts.Register(cmd)
	f := cmd.Flags()
	f.StringVar(&opts.Identity, "identity", "default", "name of this credential among several for one connector")
	f.StringVar(&opts.List, "secrets-file", "", ListUsage)
	return cmd
}

// check returns an error unless the flags name connectors in one way, and secrets in one.
func (o *BindingSetupOptions) check() error {
	switch {
	case o.List != "" && (o.Given() || o.Username != ""):
		return failure.Usagef("--secrets-file has the secrets and user names: " +
			"it excludes --secret-file, --secret-stdin, --username")
	case o.List != "" && len(o.Fqns) > 0:
		return failure.Usagef("--secrets-file names the connectors: it excludes CONNECTOR")
	case o.List == "" && len(o.Fqns) == 0:
		return failure.Usagef("binding setup needs a CONNECTOR or --secrets-file")
	}
	return o.SecretOptions.Check()
}

func (o *BindingSetupOptions) run(ctx context.Context, a *cli.App) error {
	bound, err := o.Bind(ctx, a)
	if !a.JSON || err != nil {
		return err
	}
	if len(o.Fqns) == 1 {
		return a.PrintJSON(bound[0])
	}
	return a.PrintJSON(bound)
}

// Bind makes the bindings that the flags ask for. Without --json it prints their names.
func (o *BindingSetupOptions) Bind(ctx context.Context, a *cli.App) ([]vault.Binding, error) {
	v, err := a.VaultOf()
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
		_, err = a.CreateVault(ctx, v, o.PassphraseFile)
	} else {
		v, err = a.SealingVault(ctx, o.PassphraseFile)
	}
	if err != nil {
		return nil, err
	}
	return bindAll(ctx, a, v, targets)
}

// bindAll binds targets in their order, and prints the name of each. It stops at the first that fails.
func bindAll(ctx context.Context, a *cli.App, v *vault.Vault, targets []BindingTarget) (bound []vault.Binding,
	err error) {
	bound = []vault.Binding{}
	batch := a.NewBatch()
	defer func() { err = batch.Close(err) }()
	for _, t := range targets {
		about := audit.Row{ConnectorFQN: t.Connector, ConnectorVersion: t.Version, Binding: t.Name}
		act := func() error { return v.Bind(t.Binding, t.Secret) }
		err := batch.Enact(ctx, changes.Change{What: audit.ChangeBindingSetup, About: about}, act)
		if errors.Is(err, vault.ErrExists) {
			return bound, boundAlready(err, t.Name)
		} else if err != nil {
			return bound, err
		}
		if !a.JSON {
			fmt.Fprintln(a.Stdout, t.Name)
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
