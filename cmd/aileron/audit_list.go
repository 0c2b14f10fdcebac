package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/audit"
)

// auditList shows the rows that are there.
func auditList(ctx context.Context, a *app, filter audit.Filter) error {
	return a.readAudit(func(l *audit.Log) error {
		shown := 0
		err := l.Each(ctx, filter, func(r audit.Row) error { shown++; return a.printRow(r) })
		if err == nil && shown == 0 {
			a.sayf("aileron: no row of the audit log is that")
		}
		return err
	})
}

func newAuditListCommand(a *app) *cobra.Command {
	opts := &auditOptions{limit: 100}
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List rows, oldest first",
		Example: "  aileron audit list --session 01J… --limit 0 --json",
		Args:    usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			filter, err := opts.build()
			if err != nil {
				return err
			}
			return auditList(cmd.Context(), a, filter)
		},
	}
	opts.register(cmd)
	return cmd
}
