package main

import (
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
)

// hostileRows are rows of every event with the text in every column and field, the names of fields included.
func hostileRows(text string) []audit.Row {
	var rows []audit.Row
	for _, event := range append(audit.Events(), audit.Event(text)) {
		if event == audit.EventCheckpoint || event == audit.EventPruned {
			continue // their notes are verified
		}
		r := audit.Row{Status: 403, Port: 443, RequestID: text}
		columns := reflect.ValueOf(&r).Elem()
		for i := range columns.NumField() {
			if f := columns.Field(i); f.Kind() == reflect.String && f.CanSet() {
				f.SetString(text)
			}
		}
		r.ID, r.Hash, r.PrevHash = "", "", ""
		r.Event = event
		r.Decision = audit.DecisionRejected
		r.Fields = map[string]any{text: text, "list": []any{text, map[string]any{text: text}}}
		for _, name := range []string{"agent", "mode", "image", "capture", "cause", "kept", "file", "project_widens", "also",
			"exit_code", "hash", "reasons", "hosts", "dropped_headers", "message", "found", "expected_seq", "packed",
			"rebound", "changes", "resolve", "allow", "aileron", "engine_version", "upstream_proxy", "journal"} {
			r.Fields[name] = text
		}
		for _, name := range []string{"grants", "added", "removed", "host_files"} {
			r.Fields[name] = []any{map[string]any{"connector": text, "version": text, "hash": text, "binding": text,
				"path": text, "before": text, "after": text}}
		}
		rows = append(rows, r)
	}
	return rows
}

// Whatever a row holds, no command prints a character that could control a terminal or mislead its reader, and what is
// exported has as many rows and cells as there are.
func TestTheTextOfARowControlsNothing(t *testing.T) {
	const text = "=cmd|'/c calc'!A1\"\r\n" + hostile + "<img src=x onerror=alert(1)>&\t,;\\"
	c := newRunner(t)
	rows := hostileRows(text)
	c.write(rows...)
	ids := decode[[]audit.Row](t, "["+strings.ReplaceAll(strings.TrimSpace(c.ok("audit", "list", "--limit", "0",
		"--json")), "}\n{", "},{")+"]")
	calls := [][]string{{"audit", "list", "--limit", "0"}, {"audit", "list", "-v", "--limit", "0"},
		{"audit", "tail", "-n", "100"}, {"audit", "export", "--format", "har"}, {"audit", "export"}, {"audit", "summary"},
		{"audit", "used", text}, {"audit", "verify"}, {"session", "list"}, {"session", "show", text},
		{"audit", "list", "--session", text}, {"audit", "list", "--host", text}, {"audit", "list", "--reason", text},
		{"audit", "list", "--binding", text}, {"audit", "list", "--agent", text}}
	for _, by := range []string{"binding", "connector", "host", "operation", "reason", "session"} {
		calls = append(calls, []string{"audit", "stats", "--by", by})
	}
	for _, r := range ids {
		calls = append(calls, []string{"audit", "show", r.ID})
	}
	for _, call := range calls {
		for _, args := range [][]string{call, append([]string{"--json"}, call...)} {
			out, errs, _ := c.run(args...)
			checkSafe(t, strings.Join(call[:2], " "), out)
			checkSafe(t, strings.Join(call[:2], " "), errs)
		}
	}
	for _, args := range [][]string{{"audit", "list", "--limit", "0"}, {"audit", "tail", "-v"}} {
		checkSafe(t, "a terminal", sgr.ReplaceAllString(c.onTerminal(120, nil, args...), ""))
	}
	out := c.ok("audit", "export", "--format", "csv")
	checkSafe(t, "CSV", out)
	cells, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	if err != nil || len(cells) != len(ids)+1 {
		t.Fatalf("the CSV has %d rows, %v; want %d", len(cells), err, len(ids)+1)
	}
	for _, row := range cells[1:] {
		for i, cell := range row {
			if cell != "" && strings.ContainsAny(cell[:1], "=+-@\t\r\n") {
				t.Errorf("the column %s of the CSV is %q", cells[0][i], cell)
			}
		}
	}
	var har struct{ Log struct{ Entries []any } }
	if err := json.Unmarshal([]byte(c.ok("audit", "export", "--format", "har")), &har); err != nil ||
		len(har.Log.Entries) == 0 {
		t.Errorf("the HAR has %d entries, %v", len(har.Log.Entries), err)
	}
	file := filepath.Join(t.TempDir(), "export.jsonl")
	must.Do(t, os.WriteFile(file, []byte(c.ok("audit", "export")), 0o600))
	c.ok("audit", "verify", file)
}
