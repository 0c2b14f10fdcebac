package main

import (
	"cmp"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/review"
)

func newAuditStatsCommand(a *app) *cobra.Command {
	opts, by := &auditOptions{}, "binding"
	cmd := &cobra.Command{
		Use:     "stats",
		Short:   "Count requests by binding, connector, operation, host, session or reason",
		Example: "  aileron audit stats --by host --since 24h\n  aileron audit stats --by reason --connector github",
		Args:    usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := oneOf("by", by, review.StatKinds()...); err != nil {
				return err
			}
			filter, err := opts.build(a)
			if err != nil {
				return err
			}
			return a.readAudit(func(l *audit.Log) error {
				groups, err := l.Groups(cmd.Context(), filter, audit.GroupBy{Hosts: by == "host"})
				if err != nil {
					return err
				}
				stats := review.Stats(groups, by)
				if a.json {
					return a.printJSON(stats)
				}
				if len(stats) == 0 {
					a.noMatch(cmd.Context(), l, filter)
					return nil
				}
				return a.printStats(by, stats)
			})
		},
	}
	opts.register(cmd)
	cmd.Flags().StringVar(&by, "by", by, listed(review.StatKinds()))
	return cmd
}

func (a *app) printStats(by string, stats []review.Stat) error {
	t := table{heads: []string{by, "requests", "sent", "passed", "refused", "redacted", "first", "last"}}
	for _, s := range stats {
		row := []string{word(cmp.Or(s.Name, "(none)"))}
		for _, n := range []int64{s.Total(), s.Sent, s.Passthrough, s.Refused, s.Redactions} {
			row = append(row, strconv.FormatInt(n, 10))
		}
		t.rows = append(t.rows, append(row, momentText(s.First), momentText(s.Last)))
	}
	return t.print(a.stdout, a.outputColumns())
}
