package audit

import (
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/auditview"
	"github.com/ALRubinger/aileron/internal/failure"
)

func newAuditTailCommand(a *cli.App, from *auditview.Source) *cobra.Command {
	opts := &auditOptions{from: from, limit: 10}
	follow, rows, verbose, n := false, false, false, 10
	cmd := &cobra.Command{
		Use:     "tail",
		Short:   "List the newest events, and with -f each new one; a request is one line",
		Example: "  aileron audit tail -f\n  aileron audit tail -n 50 --decision rejected",
		Args:    cli.UsageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("lines") {
				if n < 1 {
					return failure.Usagef("--lines is %d; it must be positive", n)
				}
				opts.limit = n
			}
			filter, err := opts.build(a)
			if err != nil {
				return err
			}
			if !follow {
				return from.List(cmd.Context(), filter, rows, verbose)
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			return from.Tail(ctx, opts.agent, filter, rows, verbose)
		},
	}
	opts.register(cmd)
	registerShown(cmd, &rows, &verbose)
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with each new event until interrupted")
	cmd.Flags().IntVarP(&n, "lines", "n", n, "how many events to begin with")
	return cmd
}
