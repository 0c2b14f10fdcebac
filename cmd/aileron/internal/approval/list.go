package approval

import (
	"context"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/approvals"
	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/session"
	"github.com/ALRubinger/aileron/proxy/approval"
)

func newListCommand(a *cli.App) *cobra.Command {
	follow := false
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List what waits for you, and the decisions in force",
		Example: "  aileron approval list -f\n  aileron approval list --json",
		Args:    cli.UsageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			home, err := a.Home()
			if err != nil {
				return err
			}
			if !follow {
				return list(cmd.Context(), a, home)
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			return followList(ctx, a, home)
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with each new one until interrupted")
	return cmd
}

func list(ctx context.Context, a *cli.App, home string) error {
	all, err := session.AllApprovals(ctx, home)
	open := approvals.InForce(all)
	if a.JSON {
		if failed := a.PrintJSON(open); failed != nil {
			return failed
		}
		return err
	}
	if len(open) == 0 {
		a.Infof("aileron: nothing waits for an approval")
		return err
	}
	t := console.Table{Heads: approvals.Heads}
	for _, q := range open {
		t.Rows = append(t.Rows, approvals.Cells(q, time.Now()))
	}
	if failed := t.Print(a.Stdout, a.OutputColumns()); failed != nil {
		return failed
	}
	return err
}

// pollEvery is how often the sessions are asked for what is new.
const pollEvery = 500 * time.Millisecond

// followList prints what waits, and each change of it, until ctx ends.
func followList(ctx context.Context, a *cli.App, home string) error {
	seen := map[string]approval.State{}
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		all, err := session.AllApprovals(ctx, home)
		if ctx.Err() != nil {
			return nil // interrupted
		}
		if err != nil && len(seen) == 0 {
			return err
		}
		for _, q := range approvals.News(all, seen) {
			if a.JSON {
				err = a.PrintJSON(q)
			} else {
				err = console.Table{Rows: [][]string{approvals.Cells(q, time.Now())}}.Print(a.Stdout, 0)
			}
			if err != nil {
				return err
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}
