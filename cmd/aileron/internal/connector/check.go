package connector

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/connectors"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/signature"
	"github.com/ALRubinger/aileron/spec/source"
	"github.com/ALRubinger/aileron/spec/store"
)

func newConnectorCheckCommand(a *cli.App) *cobra.Command {
	opts := &FetchOptions{}
	cmd := &cobra.Command{
		Use:   "check [SRC]",
		Short: "Check a connector's source, or list newer versions of what is installed",
		Long: "Check a connector and print what it would grant: of a directory, an aileron.tar.gz, the\n" +
			"catalogue, or FQN@VERSION, which is fetched for that. Without SRC, list the newer\n" +
			"versions of all installed connectors, and of what actions pin. Pre-releases are named and not proposed.",
		Example: "  aileron connector check ./my-connector\n  aileron connector check github\n" +
			"  aileron connector check --json",
		Args: cli.UsageArgs(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return opts.checkUpdates(cmd.Context(), a, false)
			}
			if ref, isRef := connectors.RemoteRef(args[0]); isRef {
				return opts.checkRemote(cmd.Context(), a, ref, "")
			}
			if connectors.IsURL(args[0]) {
				return opts.checkRemote(cmd.Context(), a, source.Ref{}, args[0])
			}
			c, err := connectors.ReadCandidate(args[0], listFaults(a))
			if err != nil {
				return err
			}
			return printChecked(a, args[0], c)
		},
	}
	opts.Register(cmd)
	return cmd
}

// listFaults returns what prints each fault of a connector's files, if they have several; with --json all are in the
// error.
func listFaults(a *cli.App) connectors.FaultLister {
	if a.JSON {
		return nil
	}
	return a.Infof
}

// printChecked prints what a connector would grant if it could be used alone.
func printChecked(a *cli.App, src string, candidate *store.Candidate) error {
	c := candidate.Connector
	if _, err := spec.NewIndex([]*spec.Connector{c}); err != nil {
		return failure.Input(fmt.Errorf("check %s: %w", src, err), failure.ReasonConnector)
	}
	if warning := connectors.SecretWarning(c); warning != "" {
		a.Infof("warning: %s", warning)
	}
	by := connectors.CheckSignature(a.Dir, signature.ClaimOf(c), candidate.Signature)
	if a.JSON {
		return a.PrintJSON(connectors.DescribeSigned(c, by))
	}
	connectors.PrintConnector(a.Stdout, c, by, a.OutputColumns())
	return nil
}

// checkRemote fetches a connector, by its name or from a URL, and prints what it would grant.
func (o *FetchOptions) checkRemote(ctx context.Context, a *cli.App, ref source.Ref, url string) (err error) {
	s, err := a.OpenStore()
	if err != nil {
		return err
	}
	f, err := o.NewFetcher(a, s)
	if err != nil {
		return err
	}
	defer func() { err = f.CloseAfter(err) }()
	fetch := func() (store.Source, error) { return f.Fetch(ctx, ref, "") }
	if url != "" {
		fetch = func() (store.Source, error) { return f.FetchURL(ctx, url, "") }
	}
	src, err := fetch()
	if err != nil {
		return err
	}
	c, err := connectors.ReadSource(src, listFaults(a))
	if err != nil {
		return err
	}
	return printChecked(a, src.Src, c)
}
