package audit

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/report"
	"github.com/ALRubinger/aileron/internal/review"
)

// AuditList prints the events that filter selects, and with verbose why requests were refused.
func AuditList(ctx context.Context, a *cli.App, filter audit.Filter, verbose bool) error {
	return a.ReadAudit(func(l *audit.Log) error {
		p := newRowPrinter(a, func() (*audit.Log, error) { return l, nil })
		if verbose {
			p.explain = report.Explainer(a.Dir)
		}
		listed := 0
		err := l.Each(ctx, filter, func(r audit.Row) error { listed++; return p.print(ctx, r) })
		if err == nil && listed == 0 {
			noMatch(ctx, a, l, filter)
		}
		return err
	})
}

func newAuditListCommand(a *cli.App) *cobra.Command {
	opts, verbose := &auditOptions{limit: 100}, false
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List events, the oldest first",
		Example: "  aileron audit list --connector github --since 24h\n" +
			"  aileron audit list --session 01J… --limit 0 --json",
		Args: cli.UsageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			filter, err := opts.build(a)
			if err != nil {
				return err
			}
			return AuditList(cmd.Context(), a, filter, verbose)
		},
	}
	opts.register(cmd)
	registerVerbose(cmd, &verbose)
	return cmd
}

// registerVerbose adds -v to a command that lists events.
func registerVerbose(cmd *cobra.Command, verbose *bool) {
	cmd.Flags().BoolVarP(verbose, "verbose", "v", false, "with why a request was refused, and what would be allowed")
}

// noMatch prints that no event is selected, with what was probably meant by a value that no event has.
func noMatch(ctx context.Context, a *cli.App, l *audit.Log, filter audit.Filter) {
	a.Infof("aileron: no matching events%s", review.Misspelled(ctx, l, filter))
}
