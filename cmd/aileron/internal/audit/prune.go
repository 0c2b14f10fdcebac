package audit

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/auditlog"
	"github.com/ALRubinger/aileron/internal/auditview"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/review"
	"github.com/ALRubinger/aileron/internal/session"
	"github.com/ALRubinger/aileron/internal/termsafe"
)

// auditPruneOptions are the flags of audit prune.
type auditPruneOptions struct {
	before, heads string
	keys          []string
	dryRun, yes   bool
}

func newAuditPruneCommand(a *cli.App) *cobra.Command {
	var opts auditPruneOptions
	cmd := &cobra.Command{
		Use:   "prune --before WHEN",
		Short: "Remove old events, and sign what stands for them",
		Long: "Remove the events before a time, from the first one of the log up to the first one that\n" +
			"is newer, or of a session that had not ended then. They are verified first; events that do not\n" +
			"verify are not removed. The event audit.pruned stands for them: it has their numbers,\n" +
			"their times and the hash of the last one, and is signed, so that audit verify still\n" +
			"verifies what is left. This cannot be undone: aileron audit export keeps a copy. The notes\n" +
			"of learning sessions from before that time go with them.\n\n" +
			"Sessions may run meanwhile.",
		Example: "  aileron audit export --until 90d > audit-old.jsonl\n  aileron audit prune --before 90d",
		Args:    cli.UsageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			return opts.run(ctx, a)
		},
	}
	f := cmd.Flags()
	f.StringVar(&opts.before, "before", "", "remove events before then: "+review.Dates)
	f.BoolVar(&opts.dryRun, "dry-run", false, "verify and print what would be removed, and remove nothing")
	f.BoolVarP(&opts.yes, "yes", "y", false, "do not ask for confirmation")
	f.StringVar(&opts.heads, "head", "", "a file with signed heads that the events must agree with; - for standard input")
	f.StringArrayVar(&opts.keys, "key", nil, "a further public key that signed heads may have")
	return cmd
}

func (o *auditPruneOptions) run(ctx context.Context, a *cli.App) error {
	if o.before == "" {
		return failure.Usagef("--before is missing: it is a date, or a duration such as 90d")
	}
	before, err := parseMoment(o.before, "--before", review.ParseDate)
	if err != nil {
		return err
	}
	q := audit.PruneQuery{Before: before, Evidence: audit.Evidence{Keys: o.keys}}
	if q.Evidence.Heads, err = auditview.ReadKept(a.Console, o.heads); err != nil {
		return err
	}
	home, err := a.Home()
	if err != nil {
		return err
	}
	q.Running = func(id string) bool { return session.HasDir(home, id) }
	plan, err := planPrune(ctx, a, q)
	if err != nil || plan == nil {
		return err
	}
	done := review.Pruned{PrunePlan: *plan}
	if plan.Rows > 0 && !o.dryRun {
		if err := o.agree(a, plan); err != nil {
			return err
		}
		if err := prune(ctx, a, home, plan, &done); err != nil {
			return err
		}
		if done.Notes, err = session.PruneNotes(home, before); err != nil {
			a.Infof("aileron: warning: %v", err)
		}
	}
	if a.JSON {
		return a.PrintJSON(done)
	}
	_, err = fmt.Fprintln(a.Stdout, termsafe.Line(done.Text()))
	return err
}

// planPrune returns what is to be removed; nil if there is no log.
func planPrune(ctx context.Context, a *cli.App, q audit.PruneQuery) (*audit.PrunePlan, error) {
	l, err := a.AuditReader()
	if err != nil {
		return nil, err
	}
	if l == nil {
		a.Infof("aileron: no audit log yet; it begins with the first session")
		return nil, nil
	}
	defer l.Close()
	return auditlog.PlanPrune(ctx, l, q)
}

// agree asks the person at the terminal.
func (o *auditPruneOptions) agree(a *cli.App, plan *audit.PrunePlan) error {
	if o.yes {
		return nil
	}
	if !a.Interactive() {
		return failure.Usagef("there is no terminal to ask for confirmation on; pass --yes to remove %d events", plan.Rows)
	}
	yes, err := a.Agreed("remove " + review.PrunePlanText(plan) + "? This cannot be undone")
	if err == nil && !yes {
		err = failure.Declined("not pruned: it was not confirmed")
	}
	return err
}

// prune removes what was planned, and gives the space back.
func prune(ctx context.Context, a *cli.App, home string, plan *audit.PrunePlan, done *review.Pruned) (err error) {
	l, err := a.OpenLog(home)
	if err != nil {
		return auditlog.Hint(err)
	}
	defer func() { err = errors.Join(err, auditlog.LossHint(l.Close(), home)) }()
	row, err := auditlog.Prune(ctx, l, plan, func(n int64) {
		if a.MessagesOnTerminal() && n < plan.Rows {
			a.Infof("aileron: %d of %d events are removed", n, plan.Rows)
		}
	})
	if err != nil {
		return err
	}
	done.Pruned, done.ID = true, row.ID
	if a.MessagesOnTerminal() {
		a.Infof("aileron: the events are removed; the space is given back")
	}
	size, err := l.Shrink(ctx)
	if err != nil {
		a.Infof("aileron: warning: %v", err)
	}
	if size.After < size.Before {
		done.Shrunk = size
	}
	return nil
}
