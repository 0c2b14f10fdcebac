package main

import (
	"encoding/csv"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ALRubinger/aileron/audit/export"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/termsafe"
)

// A spreadsheet executes a cell that begins like a formula.
func TestNoCellOfTheCSVIsAFormula(t *testing.T) {
	c := newRunner(t)
	formulas := []string{"=HYPERLINK(\"http://evil.example\")", "+1+cmd", "-2+3", "@SUM(A1)",
		"\t=1", "\r=1", "\n=1", "＝1"}
	for _, f := range formulas {
		c.write(audit.Row{Event: audit.EventSandboxRejected, Decision: audit.DecisionRejected, Method: f, Host: f, Path: f,
			Tool: f, ConnectorFQN: f, Port: 8443, Status: 403, RequestBytes: -1, Fields: map[string]any{"x": f}})
	}
	c.write(audit.Row{Event: audit.EventSandboxRejected, Host: "a=b-c.example", Path: "/@x"})
	records, err := csv.NewReader(strings.NewReader(c.ok("audit", "export", "--format", "csv"))).ReadAll()
	if err != nil || len(records) != len(formulas)+2 {
		t.Fatalf("%d records, %v", len(records), err)
	}
	column := map[string]int{}
	for i, name := range records[0] {
		column[name] = i
	}
	for i, record := range records[1:] {
		for name, j := range column {
			first, _ := utf8.DecodeRuneInString(record[j])
			if name != "request_bytes" && strings.ContainsRune("=+-@\t\r\n＝", first) {
				t.Errorf("row %d: %s is %q", i+1, name, record[j])
			}
		}
		numbers := record[column["request_bytes"]] + " " + record[column["port"]]
		if i < len(formulas) && (record[column["host"]][0] != '\'' || numbers != "-1 8443") {
			t.Errorf("row %d is %q", i+1, record)
		}
	}
	if last := records[len(records)-1]; last[column["host"]] != "a=b-c.example" || last[column["path"]] != "/@x" {
		t.Errorf("a harmless row is %q", last)
	}
}

// Nothing that the audit commands print controls a terminal.
func TestAuditOutputIsEscaped(t *testing.T) {
	c := newRunner(t)
	const bad = "a\u202eb\u009b2Jc\x1b]0;t\ad\u2066e\u200ff"
	c.write(audit.Row{Event: audit.EventProxyRejected, Decision: audit.DecisionRejected, Reason: bad, Method: bad,
		Host: bad,
		Path: "/" + bad, Fields: map[string]any{"title" + bad: bad}})
	row := decode[audit.Row](t, c.ok("audit", "list", "--json"))
	if row.Host != bad {
		t.Errorf("the JSON object has the host %q, want %q", row.Host, bad)
	}
	for _, args := range []string{
		"list", "list --json", "tail", "tail --json", "show " + row.ID, "show --json " +
			row.ID, "export", "export --format csv", "list -v", "summary", "summary --json", "stats --by reason",
		"stats --by host --json",
	} {
		out := c.ok(append([]string{"audit"}, strings.Fields(args)...)...)
		if i := strings.IndexFunc(out, termsafe.Unsafe); i >= 0 || !strings.Contains(out, `\u202e`) {
			t.Errorf("audit %s prints %q", args, out)
		}
		if strings.Contains(args, "show --json") && !json.Valid([]byte(out)) {
			t.Errorf("audit %s prints no JSON", args)
		}
	}
}

// harOf decodes a HAR log.
func harOf(t *testing.T, text string) []export.HAREntry {
	t.Helper()
	var log struct {
		Log struct {
			Version string
			Entries []export.HAREntry
		}
	}
	if err := json.Unmarshal([]byte(text), &log); err != nil || log.Log.Version != "1.2" || log.Log.Entries == nil {
		t.Fatalf("%v in %q", err, text)
	}
	return log.Log.Entries
}

func TestExportAsHAR(t *testing.T) {
	c := newRunner(t)
	if got := harOf(t, c.ok("audit", "export", "--format", "har")); len(got) != 0 {
		t.Errorf("without a log there are %d entries", len(got))
	}
	const bad = "a\u202eb\x1b]0;t\a"
	c.write(audit.Row{Event: audit.EventSessionStarted, SessionID: "s"})
	for _, request := range []string{"r1", "r2"} {
		r := audit.Row{Event: audit.EventProxyStarted, RequestID: request, Method: "GET", Host: "x.example", Port: 443,
			Path: "/" + request, Scheme: "https", Tool: bad}
		c.write(r)
		r.Event, r.Decision, r.Status = audit.EventProxyProxied, audit.DecisionProxied, 200
		c.write(r)
	}
	out := c.ok("audit", "export", "--format", "har")
	got := harOf(t, out)
	if len(got) != 2 || got[0].Request.URL != "https://x.example/r1" || got[1].Aileron.Tool != bad {
		t.Errorf("the entries are %+v", got)
	}
	if i := strings.IndexFunc(out, termsafe.Unsafe); i >= 0 {
		t.Errorf("byte %d of the output controls a terminal: %q", i, out)
	}
	if got := harOf(t, c.ok("audit", "export", "--format", "har", "--decision", "rejected")); len(got) != 0 {
		t.Errorf("no request was denied, and there are %d entries", len(got))
	}
}
