package audit

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/audit/export"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/auditschema"
	"github.com/ALRubinger/aileron/internal/auditview"
	"github.com/ALRubinger/aileron/internal/review"
)

func newAuditExportCommand(a *cli.App, from *auditview.Source) *cobra.Command {
	opts := &auditOptions{from: from}
	format, schema := "jsonl", false
	cmd := &cobra.Command{
		Use:     "export",
		Short:   "Write events as JSON lines or CSV, or requests as HAR",
		Example: "  aileron audit export --format csv --since 24h > audit.csv",
		Args:    cli.UsageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if schema {
				return printSchema(a)
			}
			if err := cli.OneOf("format", format, "jsonl", "csv", "har"); err != nil {
				return err
			}
			filter, err := opts.build(a)
			if err != nil {
				return err
			}
			read := false
			err = from.Read(cmd.Context(), func(l review.Log) error {
				read = true
				switch format {
				case "csv":
					return auditCSV(cmd.Context(), a, l, filter)
				case "har":
					return export.WriteHAR(cmd.Context(), l, a.Stdout, a.Build.Release, filter)
				}
				return l.Each(cmd.Context(), filter, func(r audit.Row) error { return a.PrintJSON(r) })
			})
			if err == nil && !read && format == "har" {
				return export.WriteEmptyHAR(a.Stdout, a.Build.Release)
			}
			return err
		},
	}
	opts.register(cmd)
	cmd.Flags().StringVar(&format, "format", format, "jsonl, csv or har")
	cmd.Flags().BoolVar(&schema, "schema", false, "write the JSON Schema of the lines of jsonl, and no events")
	return cmd
}

// printSchema prints the schema that docs/audit.schema.json has.
func printSchema(a *cli.App) error {
	schema, err := auditschema.Document()
	if err != nil {
		return err
	}
	_, err = a.Stdout.Write(schema)
	return err
}

func auditCSV(ctx context.Context, a *cli.App, l review.Log, filter audit.Filter) error {
	w := export.NewCSV(a.Stdout)
	return errors.Join(l.Each(ctx, filter, w.Write), w.End())
}
