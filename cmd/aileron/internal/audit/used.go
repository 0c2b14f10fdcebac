package audit

import (
	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/review"
)

func newAuditUsedCommand(a *cli.App) *cobra.Command {
	opts := &auditOptions{}
	cmd := &cobra.Command{
		Use:     "used BINDING",
		Short:   "Show who used a credential, when, for which operations, and what was refused",
		Example: "  aileron audit used bearer/github/work\n  aileron audit used github --since 24h",
		Args:    cli.UsageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			filter, err := opts.build(a)
			if err != nil {
				return err
			}
			return a.ReadAudit(func(l *audit.Log) error {
				used, err := review.UsesOf(cmd.Context(), l, filter, args[0])
				if err != nil {
					return err
				}
				if a.JSON {
					return a.PrintJSON(used)
				}
				return review.PrintUsed(a.Stdout, used, a.OutputColumns())
			})
		},
	}
	opts.register(cmd)
	return cmd
}
