package audit

import (
	"context"
	"fmt"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/auditlog"
	"github.com/ALRubinger/aileron/internal/destination"
	"github.com/ALRubinger/aileron/internal/failure"
)

func newAuditShipCommand(a *cli.App) *cobra.Command {
	var to string
	var once, migrate bool
	o := destination.Options{Env: a.Getenv, Report: a.Infof, Version: a.Build.Release}
	cmd := &cobra.Command{
		Use:   "ship",
		Short: "Send the rows of the log to a database, a stream or a collector, where all hosts can be asked",
		Long: "Send the rows of the log elsewhere, in their order, beginning behind the newest one that\n" +
			"is there. The log stays as it is. A URL is one of\n\n" +
			"  postgres://USER@HOST/DATABASE     PostgreSQL, which recomputes each hash, and is asked\n" +
			"                                    with aileron audit list --db and the like\n" +
			"  nats://HOST/STREAM, tls://…       NATS JetStream\n" +
			"  otlp+https://HOST:PORT            an OpenTelemetry collector, as log records\n\n" +
			"docs/audit-shipping.md has the roles and grants, and what each of them can prove.",
		Example: "  aileron audit ship --migrate --to postgres://owner@db.example/audit\n" +
			"  aileron audit ship --follow --to @/run/secrets/audit-url",
		Args: cli.UsageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if once && (o.Follow || migrate) || o.Follow && migrate {
				return failure.Usagef("only one of --once, --follow and --migrate can be used")
			}
			o.From = func() (*url.URL, error) { return destination.ParseURL(to, a.Getenv) }
			if _, err := o.From(); err != nil {
				return failure.Usagef("--to: %w", err)
			}
			if migrate {
				return migrateDatabase(cmd.Context(), a, o)
			}
			if o.Home, err = a.Home(); err != nil {
				return err
			}
			return a.Interruptible(cmd.Context(), func(ctx context.Context) error {
				sent, err := destination.Ship(ctx, o)
				if err == nil && a.JSON {
					return a.PrintJSON(sent)
				}
				if err == nil {
					a.Infof("aileron: %d rows shipped; the newest is row %d", sent.Rows, sent.Newest)
				}
				return auditlog.Hint(err)
			})
		},
	}
	cmd.Flags().StringVar(&to, "to", "",
		"the URL of a database, a stream or a collector, or @FILE with one; else "+destination.Variable)
	cmd.Flags().BoolVar(&once, "once", false, "end when all rows are sent (the default)")
	cmd.Flags().BoolVar(&o.Follow, "follow", false, "go on with each new row until interrupted")
	cmd.Flags().BoolVar(&migrate, "migrate", false,
		"create the tables or the stream, or bring them to this version, and end")
	return cmd
}

// migrateDatabase makes the tables or the stream, or brings them to the version of this program.
func migrateDatabase(ctx context.Context, a *cli.App, o destination.Options) error {
	from, to, err := destination.Migrate(ctx, o)
	if err == nil && a.JSON {
		return a.PrintJSON(map[string]int{"from": from, "to": to})
	}
	if err == nil {
		_, err = fmt.Fprintf(a.Stdout, "version %d, was %d\n", to, from)
	}
	return err
}
