package main

import (
	"context"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/auditlog"
)

func newAuditTailCommand(a *app) *cobra.Command {
	opts := &auditOptions{limit: 10}
	follow, n := false, 10
	cmd := &cobra.Command{
		Use:     "tail",
		Short:   "List the newest events, and with -f each new one",
		Example: "  aileron audit tail -f\n  aileron audit tail -n 50 --decision rejected",
		Args:    usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("lines") {
				if n < 1 {
					return usagef("--lines is %d; it must be positive", n)
				}
				opts.limit = n
			}
			filter, err := opts.build(a)
			if err != nil {
				return err
			}
			if !follow {
				return auditList(cmd.Context(), a, filter)
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			return auditFollow(ctx, a, filter)
		},
	}
	opts.register(cmd)
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with each new event until interrupted")
	cmd.Flags().IntVarP(&n, "lines", "n", n, "how many events to begin with")
	return cmd
}

// auditFollow prints events until ctx ends, including those of a log that does not exist yet.
func auditFollow(ctx context.Context, a *app, filter audit.Filter) error {
	home, err := a.Home()
	if err != nil {
		return err
	}
	err = audit.Follow(ctx, filepath.Join(home, "audit.db"), filter, a.printRow, a.auditNotice)
	return auditlog.Hint(err)
}
