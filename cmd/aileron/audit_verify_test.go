package main

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/changes"
	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/home"
)

// tamper changes the home's audit.db behind aileron's back, without the triggers that would refuse it.
func (c runner) tamper(query string) {
	c.t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(c.Flag, "audit.db"))
	if err != nil {
		c.t.Fatal(err)
	}
	defer db.Close()
	const drop = "DROP TRIGGER IF EXISTS events_update; DROP TRIGGER IF EXISTS events_delete;"
	if _, err := db.Exec(drop + query); err != nil {
		c.t.Fatal(err)
	}
}

// requests are n outcome rows, no two alike.
func requests(n int) (rows []audit.Row) {
	for i := range n {
		rows = append(rows, audit.Row{Event: audit.EventProxyProxied, Decision: audit.DecisionProxied, Method: "GET",
			Host: fmt.Sprintf("h%d.example", i), Port: 443, Path: fmt.Sprintf("/items/%d", i), Status: 200 + i})
	}
	return rows
}

// Scripts rely on the exit code: 0 for a log that fits, 1 for one that does
// not, with --json and without.
func TestVerifyEndsWithOneForWhatDoesNotFit(t *testing.T) {
	for _, w := range []struct {
		name, change string
		remove       []string
		want         string
	}{
		{"untouched", "", nil, ""},
		{"a row edited", "UPDATE events SET host = 'other.example' WHERE seq = 3", nil, "its content does not have its hash"},
		{"a row deleted", "DELETE FROM events WHERE seq = 3", nil, "row 3 is missing before it"},
		{"the tail cut", "DELETE FROM events WHERE seq > 4", nil, "the log ends at row 4, and once had row 6"},
		{"the head removed", "", []string{"audit.head"}, "the head outside the database is missing"},
		{"the database removed", "", []string{"audit.db"}, "the log ends at row 0, and once had row 6"},
		{"both removed", "", []string{"audit.db", "audit.head"}, "the witness of audit.head has its hash"},
	} {
		t.Run(w.name, func(t *testing.T) {
			c := newRunner(t)
			c.write(requests(6)...)
			if w.change != "" {
				c.tamper(w.change)
			}
			for _, name := range w.remove {
				must.Do(t, os.Remove(filepath.Join(c.Flag, name)))
			}
			want := 0
			if w.want != "" {
				want = 1
			}
			out, errs, code := c.run("audit", "verify")
			listed := strings.Contains(out, w.want) && strings.Contains(errs, w.want) && strings.HasPrefix(out,
				"ok  6 rows  ") == (want == 0)
			if code != want || !listed || (errs != "") != (want == 1) {
				t.Errorf("audit verify ends with %d: %q, %q; want %d and %q", code, out, errs, want, w.want)
			}
			out, errs, code = c.run("audit", "verify", "--json")
			report := decode[audit.Report](t, out)
			if code != want || report.OK != (want == 0) || !strings.Contains(report.Why+fmt.Sprint(report.Findings), w.want) {
				t.Errorf("audit verify --json ends with %d: %q, %q; want %d and %q", code, out, errs, want, w.want)
			}
		})
	}
	if _, errs, code := newRunner(t).run("audit", "verify"); code != 1 || !strings.Contains(errs, "there is none yet") {
		t.Errorf("without a log it ends with %d: %s", code, errs)
	}
}

// The first command that records something after the change says so, once, and
// the event is there for good.
func TestACommandReportsAChangedLog(t *testing.T) {
	c := newRunner(t)
	c.write(requests(6)...)
	c.tamper("DELETE FROM events WHERE seq > 4")
	record := func() string {
		var errs strings.Builder
		a := cli.New(&console.Console{Stderr: &errs}, &home.Dir{Flag: c.Flag, Environ: os.Getenv})
		must.Do(t, a.Enact(t.Context(), changes.Change{What: audit.ChangeVaultLock}, func() error { return nil }))
		return errs.String()
	}
	errs := record()
	for _, want := range []string{"the audit log was changed", "reason=row_missing", "expected_seq=6"} {
		if strings.Count(errs, want) != 1 {
			t.Fatalf("the first command logs %q, want %q", errs, want)
		}
	}
	if errs := record(); strings.Contains(errs, "the audit log was changed") {
		t.Errorf("the second command logs it again: %q", errs)
	}
	row := decode[audit.Row](t, c.ok("audit", "list", "--event", string(audit.EventBroken), "--json"))
	if row.Seq != 5 || row.Source != audit.SourceCLI || row.Fields["expected_seq"] != 6.0 ||
		row.Fields["found"] != "missing" {
		t.Errorf("audit.broken is %+v", row)
	}
	line := c.ok("audit", "list", "--event", string(audit.EventBroken))
	if !strings.Contains(line, "expected row 6 with hash ") || !strings.Contains(line, "found missing  row_missing") {
		t.Errorf("audit list prints %q", line)
	}
	out, _, code := c.run("audit", "verify")
	if code != 1 || !strings.Contains(out, "row 5 ("+row.ID+") is broken: audit.broken: expected row 6") {
		t.Errorf("audit verify ends with %d: %s", code, out)
	}
}

func replaceFile(t *testing.T, from, to string) {
	t.Helper()
	must.Do(t, os.Rename(from, to))
}
