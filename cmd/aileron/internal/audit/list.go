package audit

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/report"
	"github.com/ALRubinger/aileron/internal/review"
)

// AuditList prints the events that filter selects. rows prints every row; otherwise a request is one line, and those
// under way follow the others. They do not count against filter.Limit: an agent that leaves requests open must not hide
// others.
func AuditList(ctx context.Context, a *cli.App, filter audit.Filter, rows, verbose bool) error {
	return a.ReadAudit(func(l *audit.Log) error {
		p := newRowPrinter(a, func() (*audit.Log, error) { return l, nil })
		if verbose {
			p.Explain = report.Explainer(a.Dir)
		}
		listed, err := p.list(ctx, l, filter, rows || a.JSON)
		if err == nil && listed == 0 {
			noMatch(ctx, a, l, filter)
		}
		return err
	})
}

// list prints the events that filter selects, and returns how many they are.
func (p *rowPrinter) list(ctx context.Context, l *audit.Log, filter audit.Filter, rows bool) (listed int, err error) {
	var unfinished review.Unfinished
	if !rows && filter.Event != audit.EventProxyStarted {
		if unfinished, err = review.FindUnfinished(ctx, l, &filter); err != nil {
			return 0, err
		}
		filter.NoIntents = true
	}
	err = unfinished.Each(ctx, l, filter, func(r audit.Row, decision string) error {
		listed++
		return p.print(ctx, r, decision)
	})
	err = errors.Join(err, p.Flush())
	p.note(unfinished)
	return listed, err
}

// note prints how many requests were left out.
func (p *rowPrinter) note(u review.Unfinished) {
	if u.Note != "" {
		p.a.Infof("%s", u.Note)
	}
}

func newAuditListCommand(a *cli.App) *cobra.Command {
	opts, rows, verbose := &auditOptions{limit: 100}, false, false
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
			return AuditList(cmd.Context(), a, filter, rows, verbose)
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

// noMatch prints that no event is selected, with what was probably meant by a value that no event has.
func noMatch(ctx context.Context, a *cli.App, l *audit.Log, filter audit.Filter) {
	a.Infof("aileron: no matching events%s", review.Misspelled(ctx, l, filter))
}
