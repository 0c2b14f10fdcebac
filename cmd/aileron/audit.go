package main

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/audit"
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
	f.StringVar(&o.filter.Event, "event", "", "only this event, such as connector.proxy.proxied")
	f.StringVar(&o.filter.Decision, "decision", "", "only this decision: proxied, passthrough, rejected, upgrade or disabled")
	f.StringVar(&o.filter.Host, "host", "", "only this host")
	f.StringVar(&o.filter.Connector, "connector", "", "only this connector")
	f.StringVar(&o.since, "since", "", "only rows from then on: RFC 3339, or a span such as 10m")
	f.StringVar(&o.until, "until", "", "only rows before then: RFC 3339, or a span such as 10m")
	f.IntVar(&o.limit, "limit", o.limit, "at most so many rows, the newest; 0 for all")
}

func (o *auditOptions) build() (audit.Filter, error) {
	f := o.filter
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
	cmd.AddCommand(newAuditTailCommand(a), newAuditListCommand(a), newAuditShowCommand(a), newAuditVerifyCommand(a), newAuditExportCommand(a))
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
	return l, err
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
			filter, err := opts.build()
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("lines") {
				filter.Limit = n
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			return auditTail(ctx, a, filter, follow)
		},
	}
	opts.register(cmd)
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with each new row until interrupted")
	cmd.Flags().IntVarP(&n, "lines", "n", n, "how many rows to begin with")
	return cmd
}

func auditTail(ctx context.Context, a *app, filter audit.Filter, follow bool) error {
	for {
		l, err := a.auditReader()
		if err != nil {
			return err
		}
		switch {
		case l != nil && follow:
			defer l.Close()
			return l.Follow(ctx, filter, a.printRow)
		case l != nil:
			defer l.Close()
			return l.Each(ctx, filter, a.printRow)
		case !follow:
			a.sayf("aileron: there is no audit log yet")
			return nil
		}
		select { // a session may begin any moment
		case <-ctx.Done():
			return nil
		case <-time.After(200 * time.Millisecond):
		}
	}
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
			return auditTail(cmd.Context(), a, filter, false)
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
				return hint(audit.ErrNotFound, "there is no audit log yet")
			}
			defer l.Close()
			row, err := l.Get(cmd.Context(), args[0])
			if err != nil {
				return hint(err, "aileron audit list --json shows the ids")
			}
			if a.json {
				return a.printJSON(row)
			}
			raw, err := json.MarshalIndent(row, "", "  ")
			if err != nil {
				return err
			}
			fmt.Fprintln(a.stdout, string(raw)) // JSON escapes whatever a terminal would obey
			return nil
		},
	}
}

func newAuditVerifyCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "verify",
		Short:   "Check the chain of hashes, and name the first broken row",
		Example: "  aileron audit verify",
		Args:    usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := a.auditReader()
			if err != nil {
				return err
			}
			if l == nil {
				return hint(errors.New("verify the audit log: there is none yet"), "it begins with the first session")
			}
			defer l.Close()
			report, err := l.Verify(cmd.Context())
			if err != nil {
				return err
			}
			if a.json {
				if err := a.printJSON(report); err != nil {
					return err
				}
				if !report.OK {
					return exitError{1}
				}
				return nil
			}
			if !report.OK {
				return hint(fmt.Errorf("verify the audit log: row %d (%s) is broken: %s", report.BrokenSeq, first(report.BrokenID, "no id"), report.Why),
					"somebody changed the database; rows before that one hold")
			}
			fmt.Fprintf(a.stdout, "ok  %d rows  %s\n", report.Rows, report.Head)
			return nil
		},
	}
}

func newAuditExportCommand(a *app) *cobra.Command {
	opts := &auditOptions{}
	format := "jsonl"
	cmd := &cobra.Command{
		Use:     "export",
		Short:   "Write rows as JSON lines or CSV",
		Example: "  aileron audit export --format csv --since 24h > audit.csv",
		Args:    usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			filter, err := opts.build()
			if err != nil {
				return err
			}
			l, err := a.auditReader()
			if err != nil || l == nil {
				return err
			}
			defer l.Close()
			switch format {
			case "jsonl":
				return l.Each(cmd.Context(), filter, func(r audit.Row) error { return a.printJSON(r) })
			case "csv":
				return auditCSV(cmd.Context(), a, l, filter)
			}
			return usagef("--format is %q; it must be jsonl or csv", format)
		},
	}
	opts.register(cmd)
	cmd.Flags().StringVar(&format, "format", format, "jsonl or csv")
	return cmd
}

func auditCSV(ctx context.Context, a *app, l *audit.Log, filter audit.Filter) error {
	w := csv.NewWriter(a.stdout)
	if err := w.Write(strings.Split("seq,id,ts,event,session_id,source,decision,reason,connector_fqn,connector_version,tool,operation,binding,method,"+
		"scheme,host,port,path,http_version,status,request_bytes,response_bytes,redactions,duration_us,fields,prev_hash,hash", ",")); err != nil {
		return err
	}
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	err := l.Each(ctx, filter, func(r audit.Row) error {
		fields, err := json.Marshal(r.Fields)
		if err != nil {
			return err
		}
		return w.Write([]string{number(r.Seq), r.ID, r.TS.Format(time.RFC3339Nano), r.Event, r.SessionID, r.Source, r.Decision, r.Reason, r.ConnectorFQN,
			r.ConnectorVersion, r.Tool, r.Operation, r.Binding, r.Method, r.Scheme, r.Host, strconv.Itoa(r.Port), r.Path, r.HTTPVersion,
			strconv.Itoa(r.Status), number(r.RequestBytes), number(r.ResponseBytes), strconv.Itoa(r.Redactions), number(r.DurationUS),
			string(fields), r.PrevHash, r.Hash})
	})
	w.Flush()
	return errors.Join(err, w.Error())
}

// printRow writes one row: as an object with --json, else for a person.
func (a *app) printRow(r audit.Row) error {
	if a.json {
		return a.printJSON(r)
	}
	decision := first(r.Decision, "-")
	if r.Event == audit.EventProxyStarted {
		decision = "started"
	} else if r.Decision == "" {
		decision = r.Event
	}
	what := r.Method
	if r.Host != "" {
		what = strings.TrimSpace(r.Method + " " + r.Host + r.Path)
		if r.Port != 443 && r.Port != 80 && r.Port != 0 {
			what = strings.TrimSpace(fmt.Sprintf("%s %s:%d%s", r.Method, r.Host, r.Port, r.Path))
		}
	}
	status := "   "
	if r.Status != 0 {
		status = strconv.Itoa(r.Status)
	}
	line := fmt.Sprintf("%s  %-9s %s  %s", r.TS.Local().Format("15:04:05.000"), decision, status, what)
	if r.Operation != "" {
		line += "  [" + r.Tool + " " + r.Operation + "]"
	}
	if r.Reason != "" {
		line += "  " + r.Reason
	}
	if r.Redactions > 0 {
		line += fmt.Sprintf("  %d wiped out", r.Redactions)
	}
	_, err := fmt.Fprintln(a.stdout, inert(line))
	return err
}

// inert replaces whatever a terminal would obey.
func inert(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
			return '?'
		}
		return r
	}, s)
}
