package audit

import (
	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/auditview"
	"github.com/ALRubinger/aileron/internal/review"
)

func newAuditSummaryCommand(a *cli.App, from *auditview.Source) *cobra.Command {
	opts := &auditOptions{from: from}
	cmd := &cobra.Command{
		Use:   "summary",
		Short: "Show who used which credential, for what, what was refused, and whether the record verifies",
		Example: "  aileron audit summary --since 24h\n" +
			"  aileron audit summary --session 01J… --json",
		Args: cli.UsageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			filter, err := opts.build(a)
			if err != nil {
				return err
			}
			return from.Read(cmd.Context(), func(l review.Log) error {
				s, err := review.Summarize(cmd.Context(), l, filter)
				if err != nil {
					return err
				}
				if a.JSON {
					return a.PrintJSON(s)
				}
				return s.Print(a.Stdout, a.OutputColumns())
			})
		},
	}
	opts.register(cmd)
	return cmd
}
