package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/hint"
)

// auditOptions are the filters of every audit command.
type auditOptions struct {
	filter       audit.Filter
	since, until string
	limit        int
}

func (o *auditOptions) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.filter.Session, "session", "", "only this session's rows")
	f.StringVar(&o.filter.Event, "event", "", "only this event, such as "+audit.EventProxyProxied)
	f.StringVar(&o.filter.Decision, "decision", "", "only this decision: "+strings.Join(audit.Decisions(), ", "))
	f.StringVar(&o.filter.Host, "host", "", "only this host")
	f.StringVar(&o.filter.Connector, "connector", "", "only this connector")
	f.StringVar(&o.since, "since", "", "only rows from then on: RFC 3339, or a span such as 10m")
	f.StringVar(&o.until, "until", "", "only rows before then: RFC 3339, or a span such as 10m")
	f.IntVar(&o.limit, "limit", o.limit, "at most so many rows, the newest; 0 for all")
}

func (o *auditOptions) build() (audit.Filter, error) {
	f := o.filter
	if f.Event != "" {
		if err := oneOf("event", f.Event, audit.Events()...); err != nil {
			return f, err
		}
	}
	if f.Decision != "" {
		if err := oneOf("decision", f.Decision, audit.Decisions()...); err != nil {
			return f, err
		}
	}
	var err error
	if f.Since, err = parseMoment(o.since, "--since"); err != nil {
		return f, err
	}
	if f.Until, err = parseMoment(o.until, "--until"); err != nil {
		return f, err
	}
	if o.limit < 0 {
		return f, usagef("--limit is %d; it must not be negative", o.limit)
	}
	f.Limit, f.Newest = o.limit, true
	return f, nil
}

func parseMoment(s, flag string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if span, err := time.ParseDuration(s); err == nil && span >= 0 {
		return time.Now().Add(-span), nil
	}
	at, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return at, usagef("%s is %q; it must be RFC 3339 or a span such as 10m", flag, s)
	}
	return at, nil
}

func newAuditCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "See what happened",
		Args:  cobra.ArbitraryArgs,
		RunE:  subcommandNeeded,
	}
	cmd.AddCommand(newAuditTailCommand(a), newAuditListCommand(a), newAuditShowCommand(a), newAuditSummaryCommand(a),
		newAuditVerifyCommand(a), newAuditExportCommand(a), newAuditRecoverCommand(a))
	return cmd
}

// auditReader opens the log for reading; nil when there is none yet.
func (a *app) auditReader() (*audit.Log, error) {
	home, err := a.Home()
	if err != nil {
		return nil, err
	}
	l, err := audit.OpenReader(filepath.Join(home, "audit.db"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var foreign *audit.SchemaError
	if errors.As(l.Foreign(), &foreign) {
		if len(foreign.Lacks) > 0 {
			return nil, errors.Join(auditHint(fmt.Errorf("read the audit log: %w", foreign)), l.Close())
		}
		a.sayf("aileron: warning: %v: only what it knows is shown", foreign)
	}
	return l, nil
}

func newAuditTailCommand(a *app) *cobra.Command {
	opts := &auditOptions{limit: 10}
	follow, n := false, 10
	cmd := &cobra.Command{
		Use:     "tail",
		Short:   "Show the newest rows, and with -f each new one",
		Example: "  aileron audit tail -f\n  aileron audit tail -n 50 --decision rejected",
		Args:    usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("lines") {
				if n < 1 {
					return usagef("--lines is %d; it must be positive", n)
				}
				opts.limit = n
			}
			filter, err := opts.build()
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
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with each new row until interrupted")
	cmd.Flags().IntVarP(&n, "lines", "n", n, "how many rows to begin with")
	return cmd
}

// auditFollow shows rows until ctx ends, those of a log that is not there yet
// as well.
func auditFollow(ctx context.Context, a *app, filter audit.Filter) error {
	home, err := a.Home()
	if err != nil {
		return err
	}
	err = audit.Follow(ctx, filepath.Join(home, "audit.db"), filter, a.printRow, a.auditNotice)
	return auditHint(err)
}

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

// readAudit reads the log, or says that there is none yet.
func (a *app) readAudit(read func(*audit.Log) error) error {
	l, err := a.auditReader()
	if err != nil {
		return err
	}
	if l == nil {
		a.sayf("aileron: there is no audit log yet")
		return nil
	}
	defer l.Close()
	return auditHint(read(l))
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

func newAuditShowCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "show ID",
		Short:   "Show one row, all of it",
		Example: "  aileron audit show 01JABCDEF…",
		Args:    usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := a.auditReader()
			if err != nil {
				return err
			}
			if l == nil {
				return hint.New(audit.ErrNotFound, "there is no audit log yet")
			}
			defer l.Close()
			row, err := l.Get(cmd.Context(), args[0])
			if errors.Is(err, audit.ErrNotFound) {
				return hint.New(err, "aileron audit list --json shows the ids")
			}
			if err != nil {
				return auditHint(fmt.Errorf("show the audit row: %w", err))
			}
			if a.json {
				return a.printJSON(row)
			}
			raw, err := json.MarshalIndent(row, "", "  ")
			if err != nil {
				return err
			}
			fmt.Fprintln(a.stdout, string(raw))
			return nil
		},
	}
}
