package main

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/auditschema"
)

func newAuditExportCommand(a *app) *cobra.Command {
	opts := &auditOptions{}
	format, schema := "jsonl", false
	cmd := &cobra.Command{
		Use:     "export",
		Short:   "Write events as JSON lines or CSV, or requests as HAR",
		Example: "  aileron audit export --format csv --since 24h > audit.csv",
		Args:    usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if schema {
				return a.printSchema()
			}
			if err := oneOf("format", format, "jsonl", "csv", "har"); err != nil {
				return err
			}
			filter, err := opts.build(a)
			if err != nil {
				return err
			}
			read := false
			err = a.readAudit(func(l *audit.Log) error {
				read = true
				switch format {
				case "csv":
					return auditCSV(cmd.Context(), a, l, filter)
				case "har":
					return l.WriteHAR(cmd.Context(), a.stdout, thisBuild().release, filter)
				}
				return l.Each(cmd.Context(), filter, func(r audit.Row) error { return a.printJSON(r) })
			})
			if err == nil && !read && format == "har" {
				return audit.WriteEmptyHAR(a.stdout, thisBuild().release)
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
func (a *app) printSchema() error {
	schema, err := auditschema.Document()
	if err != nil {
		return err
	}
	_, err = a.stdout.Write(schema)
	return err
}

func auditCSV(ctx context.Context, a *app, l *audit.Log, filter audit.Filter) error {
	w := newCSVWriter(a.stdout)
	return errors.Join(l.Each(ctx, filter, w.write), w.end())
}

// csvWriter writes rows as CSV, behind a line with the names of the columns.
type csvWriter struct {
	*csv.Writer
	began bool
}

func newCSVWriter(to io.Writer) *csvWriter { return &csvWriter{Writer: csv.NewWriter(to)} }

// begin writes the names, once.
func (w *csvWriter) begin() error {
	if w.began {
		return nil
	}
	w.began = true
	const columns = "seq,id,ts,event,session_id,source,decision,reason,connector_fqn,connector_version,tool,operation," +
		"binding,method,scheme,host,port,path,http_version,status,request_bytes,response_bytes,redactions,duration_us," +
		"fields,prev_hash,hash"
	return w.Write(strings.Split(columns, ","))
}

// write writes one row.
func (w *csvWriter) write(r audit.Row) error {
	if err := w.begin(); err != nil {
		return err
	}
	fields, err := json.Marshal(r.Fields)
	if err != nil {
		return err
	}
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	return w.Write([]string{
		number(r.Seq), cell(r.ID), r.TS.Format(time.RFC3339Nano), cell(r.Event), cell(r.SessionID), cell(r.Source),
		cell(r.Decision), cell(r.Reason), cell(r.ConnectorFQN), cell(r.ConnectorVersion), cell(r.Tool),
		cell(r.Operation), cell(r.Binding), cell(r.Method), cell(r.Scheme), cell(r.Host), strconv.Itoa(r.Port),
		cell(r.Path), cell(r.HTTPVersion), strconv.Itoa(r.Status), number(r.RequestBytes), number(r.ResponseBytes),
		strconv.Itoa(r.Redactions), number(r.DurationUS), cell(string(fields)), cell(r.PrevHash), cell(r.Hash),
	})
}

// end writes what is not written yet: the names too, if there is no row.
func (w *csvWriter) end() error {
	err := w.begin()
	w.Flush()
	return errors.Join(err, w.Error())
}

// cell returns text so that a spreadsheet shows it: a quotation mark in front keeps it from being a formula (OWASP, CSV
// injection).
func cell[T ~string](value T) string {
	text := string(value)
	first, _ := utf8.DecodeRuneInString(text)
	if text != "" && strings.ContainsRune("=+-@\t\r\n＝＋－＠", first) {
		return "'" + text
	}
	return text
}
