package audit

import (
	"cmp"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/auditview"
	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/review"
)

func newAuditStatsCommand(a *cli.App, from *auditview.Source) *cobra.Command {
	opts, by := &auditOptions{from: from}, "binding"
	cmd := &cobra.Command{
		Use:     "stats",
		Short:   "Count requests by binding, connector, operation, host, session or reason",
		Example: "  aileron audit stats --by host --since 24h\n  aileron audit stats --by reason --connector github",
		Args:    cli.UsageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cli.OneOf("by", by, review.StatKinds()...); err != nil {
				return err
			}
			filter, err := opts.build(a)
			if err != nil {
				return err
			}
			return from.Read(cmd.Context(), func(l review.Log) error {
				groups, err := l.Groups(cmd.Context(), filter, audit.GroupBy{Hosts: by == "host"})
				if err != nil {
					return err
				}
				stats := review.Stats(groups, by)
				if a.JSON {
					return a.PrintJSON(stats)
				}
				if len(stats) == 0 {
					from.NoMatch(cmd.Context(), l, filter)
					return nil
				}
				return printStats(a, by, stats)
			})
		},
	}
	opts.register(cmd)
	cmd.Flags().StringVar(&by, "by", by, hint.Listed(review.StatKinds()))
	return cmd
}

func printStats(a *cli.App, by string, stats []review.Stat) error {
	t := console.Table{Heads: []string{by, "requests", "sent", "passed", "refused", "redacted", "first", "last"}}
	for _, s := range stats {
		row := []string{review.Word(cmp.Or(s.Name, "(none)"))}
		for _, n := range []int64{s.Total(), s.Sent, s.Passthrough, s.Refused, s.Redactions} {
			row = append(row, strconv.FormatInt(n, 10))
		}
		t.Rows = append(t.Rows, append(row, review.MomentText(s.First), review.MomentText(s.Last)))
	}
	return t.Print(a.Stdout, a.OutputColumns())
}
