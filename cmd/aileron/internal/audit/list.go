package audit

import (
	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/auditview"
)

func newAuditListCommand(a *cli.App, from *auditview.Source) *cobra.Command {
	opts, rows, verbose := &auditOptions{from: from, limit: 100}, false, false
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List events, the oldest first; a request is one line",
		Example: "  aileron audit list --connector github --since 24h\n" +
			"  aileron audit list --session 01J… --limit 0 --json",
		Args: cli.UsageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			filter, err := opts.build(a)
			if err != nil {
				return err
			}
			return from.List(cmd.Context(), filter, rows, verbose)
		},
	}
	opts.register(cmd)
	registerShown(cmd, &rows, &verbose)
	return cmd
}

// registerShown adds the flags of what is shown to a command that lists events.
func registerShown(cmd *cobra.Command, rows, verbose *bool) {
	cmd.Flags().BoolVar(rows, "rows", false, "every row, as it is in the log: that of a request's intent too")
	cmd.Flags().BoolVarP(verbose, "verbose", "v", false, "with why a request was refused, and what would be allowed")
}
