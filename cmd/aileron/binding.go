package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/vault"
)

// secretOptions are the ways in which a secret comes in. There is none on the
// command line: arguments can be read by everyone on the host.
type secretOptions struct {
	file           string
	stdin          bool
	username       string
	passphraseFile string
}

func (o *secretOptions) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.file, "secret-file", "", "file that holds the secret")
	f.BoolVar(&o.stdin, "secret-stdin", false, "read the secret from standard input")
	f.StringVar(&o.username, "username", "", "user name, for kind basic")
	f.StringVar(&o.passphraseFile, "passphrase-file", "", "file that holds the vault's passphrase")
}

func (o *secretOptions) check() error {
	if o.file != "" && o.stdin {
		return usagef("--secret-file and --secret-stdin exclude each other")
	}
	return nil
}

// read gets the secret.
func (o *secretOptions) read(a *app, what string) (vault.Secret, error) {
	var raw []byte
	var err error
	switch {
	case o.file != "":
		if raw, err = readBounded(o.file, vault.MaxSecret+2); err != nil {
			return vault.Secret{}, hint(fmt.Errorf("read the secret: %w", err), "--secret-file names a readable file")
		}
		if info, err := os.Stat(o.file); err == nil && info.Mode().Perm()&0o077 != 0 {
			a.sayf("aileron: warning: others on this host can read %s; chmod 600 it, or remove it", o.file)
		}
	case o.stdin:
		if raw, err = io.ReadAll(io.LimitReader(a.stdin, vault.MaxSecret+3)); err != nil {
			return vault.Secret{}, fmt.Errorf("read the secret: %w", err)
		}
	case a.interactive():
		if raw, err = a.promptSecret(what, false); err != nil {
			return vault.Secret{}, err
		}
	default:
		return vault.Secret{}, hint(errors.New("read the secret: there is none, and nobody to ask"), "pass --secret-file or --secret-stdin")
	}
	s, err := vault.NewSecret(raw)
	if err != nil {
		return s, hint(err, "give the secret alone, in one line")
	}
	return s, nil
}

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
		return nil, err
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
	return nil, hint(fmt.Errorf("find the connector %s: it is not installed", fqn), "install it with: aileron connector install DIR")
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
	if need.Kind == "basic" && opts.username == "" {
		return usagef("a basic credential needs --username")
	}
	if need.Kind == "oauth2" && opts.file == "" && !opts.stdin {
		return hint(fmt.Errorf("bind an oauth2 credential to %s: this release opens no browser", fqn), "give an access token with --secret-file or --secret-stdin")
	}
	v, err := a.vaultOf()
	if err != nil {
		return err
	}
	name, err := v.BindingName(need.Kind, fqn, identity)
	if err != nil {
		return usageError{err}
	}
	if _, err := v.Binding(name); err == nil {
		return hint(fmt.Errorf("bind %s: it is bound already", name), "replace its secret with: aileron binding rebind %s", name)
	}
	what := need.Kind + " secret for " + fqn
	secret, err := opts.read(a, what)
	if err != nil {
		return err
	}
	if !v.Initialised() {
		p, err := a.passphrase(ctx, opts.passphraseFile, true)
		if err != nil {
			return err
		}
		if err := v.Init(p); err != nil {
			return err
		}
		a.sayf("aileron: the vault is made")
	} else if v, err = a.openVault(ctx, opts.passphraseFile); err != nil {
		return err // whoever binds must be who can unbind
	}
	b := vault.Binding{Name: name, Kind: need.Kind, Connector: fqn, Identity: identity, Username: opts.username}
	if err := v.Bind(b, secret); err != nil {
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
			if err != nil && !errors.Is(err, vault.ErrNotInitialised) {
				return err
			}
			if a.json {
				if all == nil {
					all = []vault.Binding{}
				}
				return a.printJSON(all)
			}
			w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
			for _, b := range all {
				fmt.Fprintf(w, "%s\t%s\t%s\n", b.Name, b.Connector, b.Updated.Format(time.DateOnly))
			}
			return w.Flush()
		},
	}
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
				return hint(err, "aileron binding list shows what is bound")
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
			v, err := a.openVault(cmd.Context(), opts.passphraseFile)
			if err != nil {
				return err
			}
			b, err := v.Binding(args[0])
			if err != nil {
				return hint(err, "aileron binding list shows what is bound")
			}
			secret, err := opts.read(a, b.Kind+" secret for "+b.Connector)
			if err != nil {
				return err
			}
			if err := v.Rebind(b.Name, opts.username, secret); err != nil {
				return err
			}
			a.record(cmd.Context(), audit.Row{Event: audit.EventBindingRebound, ConnectorFQN: b.Connector, Binding: b.Name})
			return nil
		},
	}
	opts.register(cmd)
	return cmd
}

func newBindingRevokeCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "revoke NAME",
		Short:   "Remove a binding; running sessions stop using it within a second",
		Example: "  aileron binding revoke bearer/aileron-connector-github/work",
		Args:    usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			v, err := a.vaultOf()
			if err != nil {
				return err
			}
			b, err := v.Binding(args[0])
			if err == nil {
				err = v.Revoke(args[0])
			}
			if err != nil {
				return hint(err, "aileron binding list shows what is bound")
			}
			a.record(cmd.Context(), audit.Row{Event: audit.EventBindingRevoked, ConnectorFQN: b.Connector, Binding: b.Name})
			return nil
		},
	}
}
