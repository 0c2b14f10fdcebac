package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/creack/pty"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/home"
	"github.com/ALRubinger/aileron/internal/review"
)

// onTerminal returns what a command prints to a terminal of so many columns.
func (c runner) onTerminal(columns uint16, env map[string]string, args ...string) string {
	c.t.Helper()
	controller, terminal, err := pty.Open()
	if err != nil {
		c.t.Skip("there are no terminals here: ", err)
	}
	defer controller.Close()
	must.Do(c.t, pty.Setsize(controller, &pty.Winsize{Rows: 40, Cols: columns}))
	seen := make(chan string)
	go func() {
		var text strings.Builder
		for buf := make([]byte, 4096); ; {
			n, err := controller.Read(buf)
			if text.Write(buf[:n]); err != nil { // the terminal was closed
				seen <- text.String()
				return
			}
		}
	}()
	var errs bytes.Buffer
	a := cli.New(&console.Console{Stdin: strings.NewReader(""), Stdout: terminal, Stderr: &errs},
		&home.Dir{Environ: func(name string) string { return env[name] }})
	code := Main(c.t.Context(), append([]string{"--home", c.Flag}, args...), a)
	_ = terminal.Close()
	text := <-seen
	if code != 0 {
		c.t.Fatalf("aileron %q ends with %d: %s", args, code, errs.String())
	}
	return strings.ReplaceAll(text, "\r\n", "\n")
}

// seenRows are rows of two sessions on two days, with what a sandbox might choose to confuse their reader.
func seenRows() []audit.Row {
	first, second := "01KAQ8ZC7FHX1M3V9T5R2N4B6D", "01KAQ91N3CQZ8K2J4H6G8F0E1A"
	day := time.Date(2026, 11, 22, 23, 59, 58, 0, time.UTC)
	request := audit.Row{Event: audit.EventProxyProxied, SessionID: first, Source: audit.SourceConnectTLS,
		Decision: audit.DecisionProxied, ConnectorFQN: githubFQN, ConnectorVersion: "0.2.0", Tool: "github",
		Operation: "user.get", Binding: "bearer/github/work", Method: "GET", Scheme: "https", Host: "api.github.com",
		Port: 443, Path: "/user", Status: 200, RequestBytes: 210, ResponseBytes: 12_345, DurationUS: 35_900,
		Redactions: 1}
	refused := audit.Row{Event: audit.EventSandboxRejected, SessionID: second, Source: audit.SourceConnectTLS,
		Decision: audit.DecisionRejected, Reason: "host_not_allowed", Method: "GET", Scheme: "https",
		Host: "evil.example", Port: 443, Path: "/\x1b[2J\u202egpj.exe" + strings.Repeat("/a-long-path", 20), Status: 403}
	rows := []audit.Row{
		{Event: audit.EventSessionStarted, SessionID: first, Fields: map[string]any{"agent": "claude", "mode": "podman"}},
		{Event: audit.EventSessionStarted, SessionID: second,
			Fields: map[string]any{"agent": "evil\x1b]0;x\a \u202eagent", "mode": "docker"}},
		request, refused, request,
	}
	for i := range rows {
		rows[i].TS = day.Add(time.Duration(i) * time.Second)
	}
	return rows
}

var sgr = regexp.MustCompile("\x1b\\[[0-9;]*m")

func TestATableFitsTheTerminal(t *testing.T) {
	setZone(t, time.FixedZone("CET", 3600))
	c := newRunner(t)
	c.write(seenRows()...)
	for _, columns := range []uint16{80, 200} {
		out := c.onTerminal(columns, nil, "audit", "list", "-v")
		t.Logf("%d columns:\n%s", columns, out)
		plain := sgr.ReplaceAllString(out, "")
		checkSafe(t, "audit list on a terminal", plain)
		rows, folded := 0, strings.Join(strings.Fields(plain), " ")
		for line := range strings.Lines(plain) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > int(columns) {
				t.Errorf("a line has %d columns, and the terminal %d: %q", n, columns, line)
			}
			if regexp.MustCompile(`^\d\d:\d\d:\d\d 01KAQ`).MatchString(line) {
				rows++
			}
		}
		if rows != 5 {
			t.Errorf("%d columns: %d rows, want 5", columns, rows)
		}
		for _, want := range []string{
			"Monday, 2026-11-23 CET (+01:00)\n", " 01KAQ8ZC7FHX claude ", " 210/12k ", " 35 proxied 200 ",
			"bearer/github/work GET api.github.com/user [github user.get] 1 redacted", `\u001b[2J\u202egpj.exe/a-long-path`,
			"why: the host evil.example:443 is not allowed", "allow it with: aileron allow evil.example"} {
			if !strings.Contains(plain, want) && !strings.Contains(folded, want) {
				t.Errorf("%d columns: there is no %q", columns, want)
			}
		}
		if n := strings.Count(plain, "CET"); n != 1 {
			t.Errorf("%d columns: the zone is named %d times", columns, n)
		}
		if strings.Count(out, "\x1b[36m01KAQ8ZC7FHX") != 3 || strings.Count(out, "\x1b[33m01KAQ91N3CQZ") != 2 {
			t.Errorf("%d columns: a session has no colour of its own:\n%q", columns, out)
		}
		if c.onTerminal(columns, map[string]string{"NO_COLOR": "1"}, "audit", "list", "-v") != plain {
			t.Errorf("%d columns: with NO_COLOR the table differs in more than colours", columns)
		}
	}
}

func TestTheDayIsSeenToChange(t *testing.T) {
	setZone(t, time.UTC)
	c := newRunner(t)
	c.write(seenRows()...)
	out := c.onTerminal(120, nil, "audit", "tail", "-n", "5")
	sunday, monday := strings.Index(out, "\nSunday, 2026-11-22 UTC (Z)\n23:59:58"),
		strings.Index(out, "\nMonday, 2026-11-23 UTC (Z)\n00:00:00")
	if sunday < 0 || monday < sunday {
		t.Errorf("audit tail prints\n%s", out)
	}
}

// A file or a pipe gets columns that do not depend on a terminal.
func TestAPipeGetsColumns(t *testing.T) {
	setZone(t, time.FixedZone("", -5*3600))
	c := newRunner(t)
	c.write(seenRows()...)
	lines := strings.Split(c.ok("audit", "list"), "\n")
	id := decode[audit.Row](t, c.ok("audit", "list", "--json", "--limit", "1")).ID
	got := strings.Fields(lines[4])
	want := []string{
		"2026-11-22T19:00:02.000-05:00", id[:14], "01KAQ8ZC7FHX", "claude", "bearer/github/work", "210/12k", "35",
		"proxied", "200", "GET", "api.github.com/user", "[github", "user.get]", "1", "redacted"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the line is %q, want %q", got, want)
	}
	if columns := strings.Fields(lines[3]); columns[3] != `evil\u001b]0;x\u0007_\u202eagent` || columns[4] != "-" ||
		columns[5] != "-" || columns[7] != "rejected" {
		t.Errorf("the line is %q", columns)
	}
}

// A field of 10 MB is cut in a list, and whole in audit show.
func TestALargeFieldFillsNoScreen(t *testing.T) {
	c := newRunner(t)
	c.write(refusedRow("GET", "a.example", 443, "/"+strings.Repeat("x", 10<<20), "malformed_request", nil))
	if out := c.ok("audit", "list"); len(out) > 2*review.MaxRowText || !strings.HasSuffix(out, "…\n") {
		t.Errorf("audit list prints %d bytes", len(out))
	}
	if out := c.onTerminal(80, nil, "audit", "list"); len(out) > 2*review.MaxRowText {
		t.Errorf("on a terminal audit list prints %d bytes", len(out))
	}
}

// setZone makes zone the local one.
func setZone(t *testing.T, zone *time.Location) {
	before := time.Local
	time.Local = zone
	t.Cleanup(func() { time.Local = before })
}

// Rows come while others are printed: none is lost, and none comes twice.
func TestTailLosesNothingUnderLoad(t *testing.T) {
	c := newRunner(t)
	c.write(requests(1)...)
	const sessions, each = 4, 300
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	out := &countedLines{wanted: 1}
	out.reached = func() { // it follows
		out.with, out.wanted, out.reached = " a.example/", sessions*(each-1), cancel // and not a checkpoint
		for s := range sessions {
			go func() {
				session := audit.NewID()
				rows := []audit.Row{{Event: audit.EventSessionStarted, SessionID: session,
					Fields: map[string]any{"agent": fmt.Sprintf("agent-%d", s)}}}
				for i := range each - 1 {
					rows = append(rows, audit.Row{Event: audit.EventProxyProxied, Decision: audit.DecisionProxied,
						SessionID: session, Host: "a.example", Port: 443, Path: fmt.Sprintf("/%d/%d", s, i)})
				}
				c.write(rows...)
			}()
		}
	}
	a := cli.New(&console.Console{Stdout: out, Stderr: io.Discard}, &home.Dir{})
	if code := Main(ctx, []string{"--home", c.Flag, "audit", "tail", "-f", "-n", "1"}, a); code != 0 {
		t.Fatalf("audit tail -f ends with %d", code)
	}
	seen := map[string]int{}
	for line := range strings.Lines(out.text.String()) {
		columns := strings.Fields(line)
		if path, ok := strings.CutPrefix(columns[len(columns)-1], "a.example/"); ok {
			seen[path+" of "+columns[3]]++
		}
	}
	for s := range sessions {
		for i := range each - 1 {
			if key := fmt.Sprintf("%d/%d of agent-%d", s, i, s); seen[key] != 1 {
				t.Errorf("the row of %s is printed %d times", key, seen[key])
			}
		}
	}
}
