package audit

import (
	"context"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/auditlog"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/report"
)

func newAuditTailCommand(a *cli.App) *cobra.Command {
	opts := &auditOptions{limit: 10}
	follow, verbose, n := false, false, 10
	cmd := &cobra.Command{
		Use:     "tail",
		Short:   "List the newest events, and with -f each new one",
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
				return AuditList(cmd.Context(), a, filter, verbose)
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			return opts.follow(ctx, a, filter, verbose)
		},
	}
	opts.register(cmd)
	registerVerbose(cmd, &verbose)
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with each new event until interrupted")
	cmd.Flags().IntVarP(&n, "lines", "n", n, "how many events to begin with")
	return cmd
}

// follow prints events until ctx ends, including those of a log that does not exist yet.
func (o *auditOptions) follow(ctx context.Context, a *cli.App, filter audit.Filter, verbose bool) error {
	home, err := a.Home()
	if err != nil {
		return err
	}
	path := filepath.Join(home, "audit.db")
	// The log may be replaced while it is followed, so each look at it opens it.
	var opened *audit.Log
	closeOpened := func() {
		if opened != nil {
			_ = opened.Close()
		}
	}
	defer func() { closeOpened() }()
	p := newRowPrinter(a, func() (l *audit.Log, err error) {
		closeOpened()
		opened, err = audit.OpenReader(path)
		return opened, err
	})
	if verbose {
		p.explain = report.Explainer(a.Dir)
	}
	show := func(r audit.Row) error { return p.print(ctx, r) }
	if o.agent != "" {
		if show, err = o.ofAgent(ctx, a, p, &filter); ctx.Err() != nil {
			return nil // interrupted
		} else if err != nil {
			return err
		}
	}
	return auditlog.Hint(audit.Follow(ctx, path, filter, show, a.AuditNotice))
}

// ofAgent prints the events so far of the agent's sessions, and returns a function that prints those of all its
// sessions: others may start.
func (o *auditOptions) ofAgent(
	ctx context.Context, a *cli.App, p *rowPrinter, filter *audit.Filter,
) (show func(audit.Row) error, err error) {
	l, err := a.AuditReader()
	if err != nil {
		return nil, err
	}
	if l != nil {
		defer l.Close()
		newest, err := l.List(ctx, audit.Filter{Limit: 1, Newest: true})
		if err != nil {
			return nil, auditlog.Hint(err)
		}
		if len(newest) == 1 {
			before := *filter
			before.ThroughSeq, filter.AfterSeq = newest[0].Seq, newest[0].Seq
			if err := l.Each(ctx, before, func(r audit.Row) error { return p.print(ctx, r) }); err != nil {
				return nil, auditlog.Hint(err)
			}
		}
	}
	filter.Sessions, filter.Limit, filter.Newest = nil, 0, false
	return func(r audit.Row) error {
		if p.agents.Of(ctx, r) != o.agent {
			return nil
		}
		return p.print(ctx, r)
	}, nil
}
