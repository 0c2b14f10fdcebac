package audit

import (
	"context"
	"errors"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/auditlog"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/report"
	"github.com/ALRubinger/aileron/internal/review"
)

func newAuditTailCommand(a *cli.App) *cobra.Command {
	opts := &auditOptions{limit: 10}
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
				return AuditList(cmd.Context(), a, filter, rows, verbose)
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			return opts.follow(ctx, a, filter, rows, verbose)
		},
	}
	opts.register(cmd)
	registerShown(cmd, &rows, &verbose)
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with each new event until interrupted")
	cmd.Flags().IntVarP(&n, "lines", "n", n, "how many events to begin with")
	return cmd
}

// follow prints events until ctx ends, including those of a log that does not exist yet.
func (o *auditOptions) follow(ctx context.Context, a *cli.App, filter audit.Filter, rows, verbose bool) error {
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
		p.Explain = report.Explainer(a.Dir)
	}
	f := &review.Fold{Rows: rows || a.JSON || filter.Event == audit.EventProxyStarted, Flush: p.Flush}
	f.Show = func(r audit.Row, waiting bool) error {
		if o.agent != "" && p.Agents.Of(ctx, r) != o.agent {
			return nil
		}
		decision := ""
		if waiting {
			decision = review.Waiting
		}
		return p.print(ctx, r, decision)
	}
	if err := o.begin(ctx, p, f, &filter); ctx.Err() != nil {
		return nil // interrupted
	} else if err != nil {
		return err
	}
	defer f.Watch(ctx)()
	return auditlog.Hint(audit.Follow(ctx, path, filter, f.Add, a.AuditNotice))
}

// begin takes what is under way. Of an agent it takes all events so far of its sessions, and changes the filter to
// those that follow of all sessions: others may start.
func (o *auditOptions) begin(ctx context.Context, p *rowPrinter, f *review.Fold, filter *audit.Filter) error {
	filter.NoIntents = !f.Rows
	l, err := p.a.AuditReader()
	if err != nil || l == nil {
		return err
	}
	defer l.Close()
	var unfinished review.Unfinished
	if selected := *filter; !f.Rows {
		unfinished, err = review.FindUnfinished(ctx, l, &selected)
		p.note(unfinished)
	}
	for _, u := range unfinished.Ended {
		err = errors.Join(err, p.print(ctx, u.Row, review.DecisionOf(u)))
	}
	if err != nil {
		return auditlog.Hint(err)
	}
	newest, err := l.List(ctx, audit.Filter{Limit: 1, Newest: true})
	if err == nil && len(newest) == 1 && o.agent != "" {
		before := *filter
		before.ThroughSeq, filter.AfterSeq = newest[0].Seq, newest[0].Seq
		err = l.Each(ctx, before, f.Add)
	}
	for _, u := range unfinished.Waiting {
		err = errors.Join(err, f.Add(u.Row))
	}
	if o.agent != "" {
		filter.Sessions, filter.Limit, filter.Newest = nil, 0, false
	}
	return auditlog.Hint(err)
}
