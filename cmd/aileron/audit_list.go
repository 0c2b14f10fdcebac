package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/audit"
)

// auditList prints the events that filter selects.
func auditList(ctx context.Context, a *app, filter audit.Filter) error {
	return a.readAudit(func(l *audit.Log) error {
		listed := 0
		err := l.Each(ctx, filter, func(r audit.Row) error { listed++; return a.printRow(r) })
		if err == nil && listed == 0 {
			a.infof("aileron: no matching events")
		}
		return err
	})
}

func newAuditListCommand(a *app) *cobra.Command {
	opts := &auditOptions{limit: 100}
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List events, the oldest first",
		Example: "  aileron audit list --session 01J… --limit 0 --json",
		Args:    usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			filter, err := opts.build(a)
			if err != nil {
				return err
			}
			return auditList(cmd.Context(), a, filter)
		},
	}
	opts.register(cmd)
	return cmd
}
