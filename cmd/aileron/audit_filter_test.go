package main

import (
	"context"
	"encoding/csv"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit"
)

// filterRows are rows that differ in all that can be filtered, a minute apart.
func filterRows(start time.Time) (rows []audit.Row) {
	for i := range 24 {
		row := audit.Row{TS: start.Add(time.Duration(i) * time.Minute), Event: audit.EventProxyProxied,
			Decision:  audit.DecisionProxied,
			SessionID: fmt.Sprintf("S%d", i%2), ConnectorFQN: fmt.Sprintf("github://acme/c%d", i%3),
			Method: "GET", Host: fmt.Sprintf("h%d.example", i%4), Port: 443, Path: fmt.Sprintf("/items/%d", i), Status: 200}
		if i%5 == 0 {
			row.Event, row.Decision = audit.EventProxyRejected, audit.DecisionRejected
		}
		rows = append(rows, row)
	}
	return rows
}

// Every command that reads rows honours every filter: it prints the rows that
// are selected, all of them, in order, and no other.
func TestEveryReaderHonoursEveryFilter(t *testing.T) {
	c := newCLI(t)
	start := time.Now().Add(-2 * time.Hour).Truncate(time.Second).UTC()
	rows := filterRows(start)
	c.write(rows...)
	at := func(i int) string { return start.Add(time.Duration(i) * time.Minute).Format(time.RFC3339) }
	for _, w := range []struct {
		flags string
		want  func(i int, r audit.Row) bool
	}{
		{"", func(int, audit.Row) bool { return true }},
		{"--session S1", func(_ int, r audit.Row) bool { return r.SessionID == "S1" }},
		{"--event " + string(audit.EventProxyRejected),
			func(_ int, r audit.Row) bool { return r.Event == audit.EventProxyRejected }},
		{"--decision proxied", func(_ int, r audit.Row) bool { return r.Decision == audit.DecisionProxied }},
		{"--host h2.example", func(_ int, r audit.Row) bool { return r.Host == "h2.example" }},
		{"--connector github://acme/c1", func(_ int, r audit.Row) bool { return r.ConnectorFQN == "github://acme/c1" }},
		{"--since " + at(7), func(i int, _ audit.Row) bool { return i >= 7 }},
		{"--since 110m30s", func(i int, _ audit.Row) bool { return i >= 10 }},
		{"--until " + at(7), func(i int, _ audit.Row) bool { return i < 7 }},
		{"--limit 5", func(i int, _ audit.Row) bool { return i >= 19 }},
		{"--session S0 --host h2.example --since " + at(3) + " --until " + at(20),
			func(i int, r audit.Row) bool {
				return r.SessionID == "S0" && r.Host == "h2.example" && i >= 3 && i < 20
			}},
		{"--session none", func(int, audit.Row) bool { return false }},
	} {
		var want []string
		for i, r := range rows {
			if w.want(i, r) {
				want = append(want, r.Path)
			}
		}
		for _, verb := range []string{"list --json", "tail --json", "tail -f --json", "export", "export --format csv"} {
			args := append([]string{"audit"}, strings.Fields(verb)...)
			if !strings.Contains(w.flags, "--limit") {
				args = append(args, "--limit", "0")
			}
			got := shownPaths(t, c, append(args, strings.Fields(w.flags)...), len(want))
			if !slices.Equal(got, want) {
				t.Errorf("audit %s %s prints %q, want %q", verb, w.flags, got, want)
			}
		}
		if strings.Contains(w.flags, "--limit") {
			continue
		}
		summary := decode[audit.Summary](t, c.ok(append([]string{"audit", "summary", "--json"},
			strings.Fields(w.flags)...)...))
		if summary.Rows != int64(len(want)) {
			t.Errorf("audit summary %s counts %d rows, want %d", w.flags, summary.Rows, len(want))
		}
	}
}

// shownPaths returns the paths of the rows that an audit command prints. One
// that follows is ended when it has printed n rows, and one more that is not
// selected was added.
func shownPaths(t *testing.T, c cli, args []string, n int) (paths []string) {
	t.Helper()
	if slices.Contains(args, "csv") {
		records, err := csv.NewReader(strings.NewReader(c.ok(args...))).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		column := slices.Index(records[0], "path")
		for _, record := range records[1:] {
			paths = append(paths, record[column])
		}
		return paths
	}
	out := ""
	if slices.Contains(args, "-f") {
		out = c.followed(args, n)
	} else {
		out = c.ok(args...)
	}
	for line := range strings.Lines(out) {
		paths = append(paths, decode[audit.Row](t, line).Path)
	}
	return paths
}

// followed runs audit tail -f until it has printed n rows.
func (c cli) followed(args []string, n int) string {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	if n == 0 {
		cancel() // it looks at the log all the same
	}
	out := &countedLines{wanted: n, reached: cancel}
	var errs strings.Builder
	a := &app{stdout: out, stderr: &errs, getenv: func(string) string { return "" }}
	if code := Main(ctx, append([]string{"--home", c.home}, args...), a); code != 0 {
		c.t.Errorf("%q ends with %d: %s", args, code, errs.String())
	}
	return out.text.String()
}

// countedLines calls reached when so many lines were written to it.
type countedLines struct {
	text    strings.Builder
	wanted  int
	reached func()
}

func (c *countedLines) Write(p []byte) (int, error) {
	c.text.Write(p)
	if c.wanted > 0 && strings.Count(c.text.String(), "\n") >= c.wanted {
		c.reached()
	}
	return len(p), nil
}

// The notices of tail -f go to stderr, with --json too.
func TestTailFollowsAReplacedLogAndReportsIt(t *testing.T) {
	for _, flags := range []string{"", "--json"} {
		c := newCLI(t)
		c.write(requests(6)...)
		other := newCLI(t)
		other.write(requests(9)...)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		var errs strings.Builder
		out := &countedLines{wanted: 2}
		out.reached = func() {
			out.wanted = 2 + 9
			out.reached = cancel
			replaceFile(t, filepath.Join(other.home, "audit.db"), filepath.Join(c.home, "audit.db"))
		}
		a := &app{stdout: out, stderr: &errs, getenv: func(string) string { return "" }}
		code := Main(ctx, append([]string{"--home", c.home, "audit", "tail", "-f", "-n", "2"}, strings.Fields(flags)...), a)
		cancel()
		if lines := strings.Count(out.text.String(), "\n"); code != 0 || lines != 2+9 || strings.Contains(out.text.String(),
			"replaced") {
			t.Errorf("tail -f %s ends with %d and prints %d lines: %s", flags, code, lines, out.text.String())
		}
		if errs.String() != "aileron: audit.db was replaced: following the new file\n" {
			t.Errorf("tail -f %s says %q", flags, errs.String())
		}
	}
}

// Without its database, what is kept beside it fills a line and no more than a
// screen.
func TestVerifyWithoutADatabaseIsShort(t *testing.T) {
	c := newCLI(t)
	for range 30 {
		c.write(requests(2)...)
	}
	replaceFile(t, filepath.Join(c.home, "audit.db"), filepath.Join(t.TempDir(), "away"))
	out, errs, code := c.run("audit", "verify")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if code != 1 || len(lines) != maxPrinted+2 || !strings.HasPrefix(lines[0],
		"broken  audit.db is missing, and what is kept beside it names rows: 30 findings") {
		t.Errorf("audit verify ends with %d and prints %d lines: %s", code, len(lines), out)
	}
	if !strings.Contains(lines[1], "once had row 60") || !strings.Contains(errs, "once had row 60") ||
		!strings.Contains(lines[len(lines)-1], "10 findings more") {
		t.Errorf("audit verify begins with %q, ends with %q and says %q", lines[1], lines[len(lines)-1], errs)
	}
	out, _, _ = c.run("audit", "verify", "--json")
	report := decode[audit.Report](t, out)
	if !report.Missing || len(report.Findings) != 30 {
		t.Errorf("the report is %+v", report)
	}
}
