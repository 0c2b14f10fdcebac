package connector

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/connectors"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/publishing"
)

func newConnectorBumpCommand(a *cli.App) *cobra.Command {
	opts := publishing.BumpOptions{}
	cmd := &cobra.Command{
		Use:   "bump [major|minor|patch]",
		Short: "Raise a connector's version by as much as its changes are due",
		Long: "Raise the version in a connector's two files and in its README.md. It is compared with\n" +
			"the last release, and less than is due is refused: major where something is gone or\n" +
			"needs more of its users (an operation, a host, an input that became required), minor\n" +
			"where something is new, else patch. Below 1.0.0, minor is enough. Without a word it\n" +
			"lists the changes and what is due, and writes nothing.",
		Example: "  aileron connector bump\n  aileron connector bump minor\n" +
			"  aileron connector bump major --since aileron.tar.gz",
		Args:      cli.UsageArgs(cobra.MaximumNArgs(1)),
		ValidArgs: []string{"major", "minor", "patch"},
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if len(args) == 1 {
				if opts.Level, err = publishing.ParseLevel(args[0]); err != nil {
					return err
				}
			}
			return runBump(cmd.Context(), a, opts)
		},
	}
	f := cmd.Flags()
	f.StringVar(&opts.Dir, "dir", ".", "the connector's directory")
	f.StringVar(&opts.Since, "since", "", "the last release: a tag, or an archive (default the highest tag)")
	f.BoolVar(&opts.Force, "force", false, "raise it by less than is due")
	return cmd
}

func runBump(ctx context.Context, a *cli.App, opts publishing.BumpOptions) error {
	b, err := publishing.Bump(ctx, opts)
	if err != nil {
		return failure.OfInput(connectors.SourceError(opts.Dir, err, listFaults(a)), failure.ReasonConnector)
	}
	if a.JSON {
		return a.PrintJSON(b.JSON())
	}
	b.Print(a.Console, opts.Level)
	return nil
}
