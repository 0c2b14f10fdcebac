// Package allow has the command aileron allow, which turns a denied request into a reviewed local connector.
package allow

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/connector"
	"github.com/ALRubinger/aileron/internal/allow"
	"github.com/ALRubinger/aileron/internal/connectors"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/local"
)

type allowOptions struct {
	allow.Operation
	yes bool
}

func New(a *cli.App) *cobra.Command {
	opts := &allowOptions{}
	cmd := &cobra.Command{
		Use:   "allow ID|HOST",
		Short: "Allow what was refused: the request of an audit row, or a host",
		Long: `Allow what no connector allows, in every session of this home from now on.
With the id of a refused request's audit row: requests with its method and path,
or with the pattern of --path. If the connector that names the host injects a
credential, such requests carry a credential of the same kind, which is bound to
the new connector. With a HOST: every request to it, without a credential.
The result is an ordinary connector, local://allowed/HOST: it is shown, you are
asked, and aileron connector remove takes it back.`,
		Example: `  aileron audit list --decision rejected --json     # the ids; the report of a session has them too
  aileron allow 01J…
  aileron allow 01J… --path '/repos/{owner}/{repo}/labels'
  aileron allow docs.example.org
  aileron launch --allow docs.example.org claude    # for one session only`,
		Args: cli.UsageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return opts.run(cmd.Context(), a, args[0]) },
	}
	f := cmd.Flags()
	f.StringVar(&opts.Path, "path", "", "a pattern that has the request's path, such as '/items/{id}'")
	f.BoolVar(&opts.AnyQuery, "any-query", false,
		"accept every query name in requests with a credential, and not only requests without a query")
	f.BoolVar(&opts.NoCredential, "no-credential", false, "send such requests without a credential")
	f.BoolVarP(&opts.yes, "yes", "y", false, "allow it without confirmation")
	return cmd
}

func (o *allowOptions) run(ctx context.Context, a *cli.App, what string) error {
	current, err := connectors.ToMatch(a.Dir, nil)
	if err != nil {
		return err
	}
	made, err := o.connectorFor(ctx, a, what, current)
	if err != nil {
		return err
	}
	if a.Interactive() && !o.yes && !a.JSON && allow.IsAllowed(made, current) {
		a.Infof("aileron: %s is allowed already; take that back with: aileron connector remove %s", made.Host,
			local.FQN(made.Host))
		return nil
	}
	dir, err := os.MkdirTemp("", "aileron-allow-")
	if err != nil {
		return fmt.Errorf("make the connector: %w", err)
	}
	defer os.RemoveAll(dir)
	if err := made.Write(dir); err != nil {
		return err
	}
	install := connector.ConnectorInstallOptions{Sources: []string{dir}, Yes: o.yes}
	return install.Run(ctx, a)
}

// connectorFor returns the connector that allows the request of a row, or a host, besides what it allows already.
func (o *allowOptions) connectorFor(
	ctx context.Context, a *cli.App, what string, current []*spec.Connector,
) (made local.Connector, err error) {
	if allow.IsRow(what) {
		row, err := allow.RefusedRow(ctx, a.Dir, what)
		if err != nil {
			return made, err
		}
		return o.ForRow(row, current)
	}
	if o.Path != "" || o.AnyQuery || o.NoCredential {
		return made,
			failure.Usagef("--path, --any-query and --no-credential are for the request of an audit row; a HOST is " +
				"allowed as it is")
	}
	return allow.ForHost(what, current)
}
