// Package audit has the commands of aileron audit: a file a verb. table.go lays out rows for a terminal.
package audit

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/auditview"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/review"
)

// auditOptions are the filters that the audit commands share.
type auditOptions struct {
	filter       audit.Filter
	from         *auditview.Source
	agent        string
	since, until string
	limit        int
}

func (o *auditOptions) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.filter.Session, "session", "", "only events of this session, by its id or the beginning of it")
	f.StringVar((*string)(&o.filter.Event), "event", "", "only this event, such as "+string(audit.EventProxyProxied))
	f.StringVar((*string)(&o.filter.Decision), "decision", "", "only this decision: "+hint.Listed(audit.Decisions()))
	f.StringVar(&o.filter.Host, "host", "", "only this host")
	f.StringVar(&o.filter.Connector, "connector", "", "only this connector, by its FQN or short name")
	f.StringVar(&o.filter.Binding, "binding", "", "only requests that carried this credential, and changes of it")
	f.StringVar(&o.filter.Operation, "operation", "", "only this operation")
	f.StringVar(&o.filter.Reason, "reason", "", "only this reason")
	f.StringVar(&o.agent, "agent", "", "only sessions of this agent or command")
	f.StringVar(&o.since, "since", "", "only events since then: "+review.Moments)
	f.StringVar(&o.until, "until", "", "only events before then, as in --since")
	f.IntVar(&o.limit, "limit", o.limit, "at most this number of events, the newest; 0 for all")
}

// build returns the filter. It looks up what is a short form in the flags.
func (o *auditOptions) build(a *cli.App) (audit.Filter, error) {
	f := o.filter
	if f.Event != "" {
		if err := cli.OneOf("event", f.Event, audit.Events()...); err != nil {
			return f, err
		}
	}
	if f.Decision != "" {
		if err := cli.OneOf("decision", f.Decision, audit.Decisions()...); err != nil {
			return f, err
		}
	}
	var err error
	if f.Connector, err = a.RecordedConnector(f.Connector); err != nil {
		return f, err
	}
	if err := o.resolveSessions(&f); err != nil {
		return f, err
	}
	if f.Since, err = parseMoment(o.since, "--since", review.ParseMoment); err != nil {
		return f, err
	}
	if f.Until, err = parseMoment(o.until, "--until", review.ParseMoment); err != nil {
		return f, err
	}
	if o.limit < 0 {
		return f, failure.Usagef("--limit is %d; it must not be negative", o.limit)
	}
	f.Limit, f.Newest = o.limit, true
	return f, nil
}

// resolveSessions replaces the beginning of a session's id by the id, and an agent by its sessions so far.
func (o *auditOptions) resolveSessions(f *audit.Filter) error {
	if o.agent == "" && (f.Session == "" || audit.IsID(f.Session)) {
		return nil
	}
	err := o.from.Read(context.Background(), func(l review.Log) error {
		return review.Select(context.Background(), l, f, o.agent)
	})
	return auditview.AmbiguousID(err)
}

// parseMoment returns the time that a flag names.
func parseMoment(s, flag string, parse func(string, time.Time) (time.Time, error)) (time.Time, error) {
	at, err := parse(s, time.Now())
	if err == nil {
		return at, nil
	}
	usage := failure.Usagef("%s is %q; %v", flag, s, err)
	if unit := hint.Of(err); unit != "" {
		return at, hint.New(usage, "%s", unit)
	}
	return at, usage
}

func New(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "See what happened, in the audit log",
		Args:  cobra.ArbitraryArgs,
		RunE:  cli.SubcommandNeeded,
	}
	from := &auditview.Source{Console: a.Console, Dir: a.Dir, JSON: &a.JSON}
	f := cmd.PersistentFlags()
	f.StringVar(&from.DB, "db", "", "ask a database that logs were shipped to: postgres://USER@HOST/DATABASE, or @FILE")
	f.StringVar(&from.Origin, "origin", "", "with --db, only the log of this installation")
	cmd.AddCommand(newAuditTailCommand(a, from), newAuditListCommand(a, from), newAuditShowCommand(from),
		newAuditSummaryCommand(a, from), newAuditStatsCommand(a, from), newAuditUsedCommand(a, from),
		newAuditVerifyCommand(a, from), newAuditExportCommand(a, from))
	for _, local := range []*cobra.Command{newAuditHeadCommand(a), newAuditServeCommand(a), newAuditPruneCommand(a),
		newAuditRecoverCommand(a), newAuditShipCommand(a)} {
		local.PreRunE = func(cmd *cobra.Command, _ []string) error {
			if from.DB != "" {
				return failure.Usagef("%s is about the log of this host: it has no --db", cmd.CommandPath())
			}
			return nil
		}
		cmd.AddCommand(local)
	}
	return cmd
}
