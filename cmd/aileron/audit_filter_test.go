package main

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/home"
	"github.com/ALRubinger/aileron/internal/review"
)

// filterRows are rows that differ in all that can be filtered, a minute apart.
func filterRows(start time.Time) (rows []audit.Row) {
	for i := range 24 {
		row := audit.Row{TS: start.Add(time.Duration(i) * time.Minute), Event: audit.EventProxyProxied,
			Decision:  audit.DecisionProxied,
			SessionID: fmt.Sprintf("S%d", i%2), ConnectorFQN: fmt.Sprintf("github://acme/c%d", i%3),
			Method: "GET", Host: fmt.Sprintf("h%d.example", i%4), Port: 443, Path: fmt.Sprintf("/items/%d", i), Status: 200,
			Binding: fmt.Sprintf("bearer/c/%d", i%3), Operation: fmt.Sprintf("items.%d", i%2)}
		if i%5 == 0 {
			row.Event, row.Decision = audit.EventProxyRejected, audit.DecisionRejected
			row.Reason = "host_not_allowed"
		}
		rows = append(rows, row)
	}
	return rows
}

// Every command that reads rows honours every filter: it prints the rows that
// are selected, all of them, in order, and no other.
func TestEveryReaderHonoursEveryFilter(t *testing.T) {
	c := newRunner(t)
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
		{"--binding bearer/c/2", func(_ int, r audit.Row) bool { return r.Binding == "bearer/c/2" }},
		{"--operation items.1", func(_ int, r audit.Row) bool { return r.Operation == "items.1" }},
		{"--reason host_not_allowed", func(_ int, r audit.Row) bool { return r.Decision == audit.DecisionRejected }},
		{"--agent unknown", func(int, audit.Row) bool { return false }},
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
func shownPaths(t *testing.T, c runner, args []string, n int) (paths []string) {
	t.Helper()
	if slices.Contains(args, "csv") {
		records := must.Get(csv.NewReader(strings.NewReader(c.ok(args...))).ReadAll())(t)
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
func (c runner) followed(args []string, n int) string {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	if n == 0 {
		cancel() // it looks at the log all the same
	}
	out := &countedLines{wanted: n, reached: cancel}
	var errs strings.Builder
	a := cli.New(&console.Console{Stdout: out, Stderr: &errs}, &home.Dir{})
	if code := Main(ctx, append([]string{"--home", c.Flag}, args...), a); code != 0 {
		c.t.Errorf("%q ends with %d: %s", args, code, errs.String())
	}
	return out.text.String()
}

// countedLines calls reached when so many lines were written to it.
type countedLines struct {
	text    strings.Builder
	with    string // the lines with this are counted
	wanted  int
	reached func()
}

func (c *countedLines) Write(p []byte) (int, error) {
	c.text.Write(p)
	if c.wanted == 0 || strings.Count(c.text.String(), "\n") < c.wanted { // most often
		return len(p), nil
	}
	n := 0
	for line := range strings.Lines(c.text.String()) {
		if strings.Contains(line, c.with) {
			n++
		}
	}
	if n >= c.wanted {
		c.reached()
	}
	return len(p), nil
}

// The notices of tail -f go to stderr, with --json too.
func TestTailFollowsAReplacedLogAndReportsIt(t *testing.T) {
	for _, flags := range []string{"", "--json"} {
		c := newRunner(t)
		c.write(requests(6)...)
		other := newRunner(t)
		other.write(requests(9)...)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		var errs strings.Builder
		out := &countedLines{wanted: 2}
		out.reached = func() {
			out.wanted = 2 + 9
			out.reached = cancel
			replaceFile(t, filepath.Join(other.Flag, "audit.db"), filepath.Join(c.Flag, "audit.db"))
		}
		a := cli.New(&console.Console{Stdout: out, Stderr: &errs}, &home.Dir{})
		code := Main(ctx, append([]string{"--home", c.Flag, "audit", "tail", "-f", "-n", "2"}, strings.Fields(flags)...), a)
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
	c := newRunner(t)
	for range 30 {
		c.write(requests(2)...)
	}
	replaceFile(t, filepath.Join(c.Flag, "audit.db"), filepath.Join(t.TempDir(), "away"))
	out, errs, code := c.run("audit", "verify")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if code != 1 || len(lines) != review.MaxPrinted+2 || !strings.HasPrefix(lines[0],
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

// agentRows are the rows of two sessions of one agent, and one of another.
func agentRows() (rows []audit.Row) {
	for i, session := range []string{
		"01KAQ8ZC7FHX1M3V9T5R2N4B6D", "01KAQ8ZC7FQQ1M3V9T5R2N4B6D", "01KAQ91N3CQZ8K2J4H6G8F0E1A",
	} {
		agent := []string{"claude", "codex", "claude"}[i]
		rows = append(rows,
			audit.Row{Event: audit.EventSessionStarted, SessionID: session, Fields: map[string]any{"agent": agent}},
			audit.Row{Event: audit.EventProxyProxied, Decision: audit.DecisionProxied, SessionID: session, Host: "a.example",
				Port: 443, Path: fmt.Sprintf("/%d", i), Binding: "bearer/github/work", Operation: "user.get"})
	}
	return rows
}

func TestAnAgentStandsForItsSessions(t *testing.T) {
	c := newRunner(t)
	c.write(agentRows()...)
	for _, args := range []string{"list --json", "tail --json", "tail -f --json -n 10", "export"} {
		got := shownPaths(t, c, strings.Fields("audit "+args+" --agent claude"), 4)
		if want := []string{"", "/0", "", "/2"}; !slices.Equal(got, want) {
			t.Errorf("audit %s prints %q, want %q", args, got, want)
		}
	}
}

// A session that starts while its agent's events are followed is followed too.
func TestAnAgentsNextSessionIsFollowed(t *testing.T) {
	c := newRunner(t)
	c.write(agentRows()[:4]...)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	out := &countedLines{wanted: 2}
	out.reached = func() {
		out.wanted, out.reached = 4, cancel
		c.write(agentRows()[2:]...)
	}
	a := cli.New(&console.Console{Stdout: out, Stderr: io.Discard}, &home.Dir{})
	if code := Main(ctx, strings.Fields("--home "+c.Flag+" audit tail -f --agent claude"), a); code != 0 {
		t.Errorf("audit tail -f ends with %d", code)
	}
	text := out.text.String()
	if strings.Contains(text, "codex") || !strings.HasSuffix(text, "a.example/2  [ user.get]\n") {
		t.Errorf("audit tail -f prints\n%s", text)
	}
}

func TestIdsAreTakenByTheirBeginnings(t *testing.T) {
	c := newRunner(t)
	c.write(agentRows()...)
	rows := strings.Split(strings.TrimSpace(c.ok("audit", "list", "--json")), "\n")
	first := decode[audit.Row](t, rows[1])
	for _, prefix := range []string{first.ID, first.ID[:25], strings.ToLower(first.ID[:20])} {
		if got := decode[audit.Row](t, c.ok("audit", "show", prefix, "--json")); got.ID != first.ID {
			t.Errorf("audit show %s shows %s", prefix, got.ID)
		}
	}
	if _, errs, code := c.run("audit", "show", first.ID[:3]); code != 2 || !strings.Contains(errs, first.ID) ||
		!strings.Contains(errs, "the ids of several events begin with") {
		t.Errorf("an ambiguous beginning ends with %d: %s", code, errs)
	}
	for _, wrong := range []string{"7ZZZ", "nonsense!", "U", first.ID + "0"} {
		if _, errs, code := c.run("audit", "show", wrong); code != 1 || !strings.Contains(errs, "there is no audit row") {
			t.Errorf("audit show %s ends with %d: %s", wrong, code, errs)
		}
	}
	got := shownPaths(t, c, strings.Fields("audit list --json --session 01KAQ8ZC7FQ"), 0)
	if !slices.Equal(got, []string{"", "/1"}) {
		t.Errorf("audit list --session with a beginning prints %q", got)
	}
	if _, errs, code := c.run("audit", "list", "--session", "01KAQ8"); code != 2 ||
		!strings.Contains(errs, "write more of one: 01KAQ8ZC7FHX1M3V9T5R2N4B6D, 01KAQ8ZC7FQQ1M3V9T5R2N4B6D") {
		t.Errorf("an ambiguous session ends with %d: %s", code, errs)
	}
}

func TestAMisspelledFilterIsNamed(t *testing.T) {
	c := newRunner(t)
	c.write(agentRows()...)
	for flags, want := range map[string]string{
		"--binding bearer/gihub/work": "no event has --binding bearer/gihub/work; did you mean bearer/github/work?",
		"--operation usr.get":         "did you mean user.get?", "--host b.example": "did you mean a.example?",
		"--binding zzzzzzzzzzzz": "aileron: no matching events\n",
	} {
		if _, errs, code := c.run(append([]string{"audit", "list"}, strings.Fields(flags)...)...); code != 0 ||
			!strings.Contains(errs, want) {
			t.Errorf("audit list %s ends with %d: %s, want %q", flags, code, errs, want)
		}
	}
}
