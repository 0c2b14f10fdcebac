package binding

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/bindings"
	"github.com/ALRubinger/aileron/internal/failure"
)

type bindingSetupOptions struct {
	bindings.Setup
	upstream cli.UpstreamOptions
}

// ListUsage is the help of the flag --secrets-file.
const ListUsage = "file of lines CONNECTOR=SECRET, for kind basic CONNECTOR=USER:SECRET (- for standard input)"

// PrintName returns what prints the name of a binding that was made, unless --json is set.
func PrintName(a *cli.App) func(name string) {
	return func(name string) {
		if !a.JSON {
			fmt.Fprintln(a.Stdout, name)
		}
	}
}

func newBindingSetupCommand(a *cli.App) *cobra.Command {
	opts := &bindingSetupOptions{}
	cmd := &cobra.Command{
		Use:   "setup CONNECTOR...",
		Short: "Bind every credential that connectors declare",
		Long: "Bind the credential that each of the connectors declares. One secret is read, and is\n" +
			"bound to all of them; --secrets-file has one for each. Once there is a vault, no\n" +
			"passphrase is needed.\n\n" +
			"Where a connector declares a login (kind oauth2), it is made in your browser, and aileron\n" +
			"renews its tokens as long as the service does.",
		Example: `  aileron binding setup github --identity work --secret-file token.txt
  pass show work/github | aileron binding setup github --secret-stdin
  aileron binding setup github --secret-exec 'op read op://Work/github/token'
  aileron binding setup --secrets-file secrets.txt
  aileron binding setup linear --client-id ID --no-browser`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Connectors = args
			if err := opts.check(); err != nil {
				return err
			}
			return opts.run(cmd.Context(), a)
		},
	}
	registerSecret(cmd, &opts.SecretSource)
	registerLogin(cmd, a, &opts.Login, &opts.upstream)
	f := cmd.Flags()
	f.StringVar(&opts.Identity, "identity", "default", "name of this credential among several for one connector")
	f.StringVar(&opts.List, "secrets-file", "", ListUsage)
	return cmd
}

// check returns an error unless the flags name connectors in one way, and secrets in one.
func (o *bindingSetupOptions) check() error {
	switch {
	case o.List != "" && (o.SecretSource.Given() || o.Login.Given() || o.Username != ""):
		return failure.Usagef("--secrets-file has the secrets and user names: " +
			"it excludes --secret-file, --secret-stdin, --secret-exec, --username, --client-id, --client-secret-file")
	case o.List != "" && len(o.Connectors) > 0:
		return failure.Usagef("--secrets-file names the connectors: it excludes CONNECTOR")
	case o.List == "" && len(o.Connectors) == 0:
		return failure.Usagef("binding setup needs a CONNECTOR or --secrets-file")
	}
	if err := checkLogin(&o.Login); err != nil {
		return err
	}
	return checkSecret(&o.SecretSource)
}

func (o *bindingSetupOptions) run(ctx context.Context, a *cli.App) error {
	bound, err := o.Bind(ctx, &a.Unlocker, PrintName(a))
	if !a.JSON || err != nil {
		return err
	}
	if len(o.Connectors) == 1 {
		return a.PrintJSON(bound[0])
	}
	return a.PrintJSON(bound)
}
