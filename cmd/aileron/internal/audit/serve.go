package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/audit/export"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/auditpage"
	"github.com/ALRubinger/aileron/internal/config"
	"github.com/ALRubinger/aileron/internal/connectors"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/report"
	"github.com/ALRubinger/aileron/internal/review"
	"github.com/ALRubinger/aileron/internal/session"
	"github.com/ALRubinger/aileron/internal/termsafe"
)

// serveOptions are the flags of audit serve.
type serveOptions struct {
	listen string
	idle   time.Duration
	decide bool
}

func newAuditServeCommand(a *cli.App) *cobra.Command {
	opts := &serveOptions{}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Show the log as a page in a browser of this machine",
		Long: "Serve a page that lists the log's events as they are written, with filters, sessions,\n" +
			"refusals by reason, the use of credentials, of tokens and of money, and files to save. It only reads; with\n" +
			"--decide it also shows what waits for your approval, and takes your decisions.\n\n" +
			"The link that is printed can be used once, by one tab, and on this machine only. There is\n" +
			"no flag to open a browser: other users could read the link in its arguments. The server\n" +
			"ends with Ctrl-C, and when no page has been open for the time of --idle.",
		Example: "  aileron audit serve\n  aileron audit serve --decide",
		Args:    cli.UsageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if opts.idle <= 0 {
				return failure.Usagef("--idle is %s; it must be positive", opts.idle)
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			return auditServe(ctx, a, *opts)
		},
	}
	cmd.Flags().StringVar(&opts.listen, "listen", "",
		"loopback address and port; port 0 is any that is free (default: 127.0.0.1:0)")
	cmd.Flags().BoolVar(&opts.decide, "decide", false, "approve and deny what waits, too: aileron approval list")
	cmd.Flags().DurationVar(&opts.idle, "idle", 30*time.Minute, "end when no page has been open for this time")
	return cmd
}

// auditServe serves the page until ctx ends.
func auditServe(ctx context.Context, a *cli.App, opts serveOptions) error {
	home, err := a.Home()
	if err != nil {
		return err
	}
	options := auditpage.Options{
		Log: filepath.Join(home, "audit.db"), Address: opts.listen, Idle: opts.idle,
		Report: func(message string) { a.Infof("aileron: %s", message) },
		Connector: func(name string) (string, error) {
			fqn, err := connectors.NewNames(a.Dir).Resolve(name)
			return string(fqn), err
		},
		Prices: func() (config.Prices, error) {
			_, conf, err := a.Settings()
			return conf.Prices, err
		},
		Explain: func(s *review.Story) { report.ExplainStory(a.Dir, s) },
		Exports: []auditpage.Export{
			{Name: "jsonl", Type: "application/x-ndjson", Begin: jsonlExport},
			{Name: "csv", Type: "text/csv; charset=utf-8", Begin: csvExport},
			{Name: "har", Type: "application/json", Write: func(ctx context.Context, l *audit.Log, filter audit.Filter,
				w io.Writer) error {
				return harExport(ctx, a, l, filter, w)
			}},
		},
	}
	if opts.decide {
		options.Desk = session.NewDesk(home, "page", a.OpenLog)
	}
	page, err := auditpage.Listen(ctx, options)
	if err != nil {
		return err
	}
	if a.JSON {
		err = a.PrintJSON(map[string]string{"url": page.URL()})
	} else {
		_, err = fmt.Fprintln(a.Stdout, page.URL())
		a.Infof("aileron: open this link in a browser of this machine; it can be used once. Ctrl-C ends the server.")
	}
	if err != nil {
		return err
	}
	return page.Serve(ctx)
}

// harExport writes requests as audit export --format har prints them.
func harExport(ctx context.Context, a *cli.App, l *audit.Log, filter audit.Filter, w io.Writer) error {
	safe := termsafe.NewWriter(w)
	if err := export.WriteHAR(ctx, l, safe, a.Build.Release, filter); err != nil {
		return err
	}
	return safe.Flush()
}

// jsonlExport writes rows as audit export --format jsonl prints them.
func jsonlExport(w io.Writer) (row func(audit.Row) error, end func() error) {
	safe := termsafe.NewWriter(w)
	enc := json.NewEncoder(safe)
	enc.SetEscapeHTML(false)
	return func(r audit.Row) error { return enc.Encode(r) }, safe.Flush
}

// csvExport writes rows as audit export --format csv prints them.
func csvExport(w io.Writer) (row func(audit.Row) error, end func() error) {
	safe := termsafe.NewWriter(w)
	c := export.NewCSV(safe)
	return c.Write, func() error {
		if err := c.End(); err != nil {
			return err
		}
		return safe.Flush()
	}
}
