package main

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/audit"
)

func newAuditExportCommand(a *app) *cobra.Command {
	opts := &auditOptions{}
	format := "jsonl"
	cmd := &cobra.Command{
		Use:     "export",
		Short:   "Write events as JSON lines or CSV",
		Example: "  aileron audit export --format csv --since 24h > audit.csv",
		Args:    usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := oneOf("format", format, "jsonl", "csv"); err != nil {
				return err
			}
			filter, err := opts.build(a)
			if err != nil {
				return err
			}
			return a.readAudit(func(l *audit.Log) error {
				if format == "csv" {
					return auditCSV(cmd.Context(), a, l, filter)
				}
				return l.Each(cmd.Context(), filter, func(r audit.Row) error { return a.printJSON(r) })
			})
		},
	}
	opts.register(cmd)
	cmd.Flags().StringVar(&format, "format", format, "jsonl or csv")
	return cmd
}

func auditCSV(ctx context.Context, a *app, l *audit.Log, filter audit.Filter) error {
	w := csv.NewWriter(a.stdout)
	columns := "seq,id,ts,event,session_id,source,decision,reason,connector_fqn,connector_version,tool,operation," +
		"binding,method,scheme,host,port,path,http_version,status,request_bytes,response_bytes,redactions,duration_us," +
		"fields,prev_hash,hash"
	if err := w.Write(strings.Split(columns, ",")); err != nil {
		return err
	}
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	err := l.Each(ctx, filter, func(r audit.Row) error {
		fields, err := json.Marshal(r.Fields)
		if err != nil {
			return err
		}
		return w.Write([]string{
			number(r.Seq), cell(r.ID), r.TS.Format(time.RFC3339Nano), cell(r.Event), cell(r.SessionID), cell(r.Source),
			cell(r.Decision), cell(r.Reason), cell(r.ConnectorFQN), cell(r.ConnectorVersion), cell(r.Tool),
			cell(r.Operation), cell(r.Binding), cell(r.Method), cell(r.Scheme), cell(r.Host), strconv.Itoa(r.Port),
			cell(r.Path), cell(r.HTTPVersion), strconv.Itoa(r.Status), number(r.RequestBytes), number(r.ResponseBytes),
			strconv.Itoa(r.Redactions), number(r.DurationUS), cell(string(fields)), cell(r.PrevHash), cell(r.Hash),
		})
	})
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
