package export

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ALRubinger/aileron/audit"
)

// CSV writes rows as CSV, behind a line with the names of the columns.
type CSV struct {
	to    *csv.Writer
	began bool
}

// NewCSV returns a writer to to.
func NewCSV(to io.Writer) *CSV { return &CSV{to: csv.NewWriter(to)} }

// begin writes the names, once.
func (w *CSV) begin() error {
	if w.began {
		return nil
	}
	w.began = true
	const columns = "seq,id,ts,event,session_id,source,decision,reason,connector_fqn,connector_version,tool,operation," +
		"binding,method,scheme,host,port,path,http_version,status,request_bytes,response_bytes,redactions,duration_us," +
		"fields,prev_hash,hash"
	return w.to.Write(strings.Split(columns, ","))
}

// Write writes one row.
func (w *CSV) Write(r audit.Row) error {
	if err := w.begin(); err != nil {
		return err
	}
	fields, err := json.Marshal(r.Fields)
	if err != nil {
		return err
	}
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	return w.to.Write([]string{
		number(r.Seq), cell(r.ID), r.TS.Format(time.RFC3339Nano), cell(r.Event), cell(r.SessionID), cell(r.Source),
		cell(r.Decision), cell(r.Reason), cell(r.ConnectorFQN), cell(r.ConnectorVersion), cell(r.Tool),
		cell(r.Operation), cell(r.Binding), cell(r.Method), cell(r.Scheme), cell(r.Host), strconv.Itoa(r.Port),
		cell(r.Path), cell(r.HTTPVersion), strconv.Itoa(r.Status), number(r.RequestBytes), number(r.ResponseBytes),
		strconv.Itoa(r.Redactions), number(r.DurationUS), cell(string(fields)), cell(r.PrevHash), cell(r.Hash),
	})
}

// End writes what is not written yet: the names too, if there is no row.
func (w *CSV) End() error {
	err := w.begin()
	w.to.Flush()
	return errors.Join(err, w.to.Error())
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
