package main

import (
	"context"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/home"
)

// exchangeRows are the rows of requests of a session: /done has ended, /denied was refused, /open is under way.
func exchangeRows(session string) []audit.Row {
	row := func(event audit.Event, decision audit.Decision, path string) audit.Row {
		return audit.Row{Event: event, Decision: decision, SessionID: session, Method: "GET", Host: "a.example", Port: 443,
			Path: path, Fields: map[string]any{"request_id": session + path}}
	}
	return []audit.Row{
		{Event: audit.EventSessionStarted, SessionID: session, Fields: map[string]any{"agent": "claude", "mode": "podman"}},
		row(audit.EventProxyStarted, "", "/open"), row(audit.EventProxyStarted, "", "/done"),
		row(audit.EventProxyProxied, audit.DecisionProxied, "/done"),
		row(audit.EventSandboxRejected, audit.DecisionRejected, "/denied"),
	}
}

// pathsOf returns the decision and the path of each line that has a path.
func pathsOf(out string) (lines []string) {
	for line := range strings.Lines(out) {
		if before, path, ok := strings.Cut(line, "a.example/"); ok {
			words := strings.Fields(before)
			lines = append(lines, words[7]+" "+strings.Fields(path)[0])
		}
	}
	return lines
}

// A request is one line, that of its outcome. One that is under way is the last, with how long it has waited; one of a
// session that has ended is unknown, and is in its place.
func TestAnExchangeIsOneLine(t *testing.T) {
	c := newRunner(t)
	lost, running := audit.NewID(), audit.NewID()
	c.write(append(exchangeRows(lost), audit.Row{Event: audit.EventSessionEnded, SessionID: lost,
		Fields: map[string]any{"cause": "the command ended"}})...)
	c.write(exchangeRows(running)...)
	for _, w := range []struct {
		flags string
		want  []string
	}{
		{"list", []string{"unknown open",
			"proxied done", "rejected denied", "proxied done", "rejected denied", "waiting open"}},
		{"list --session " + running, []string{"proxied done", "rejected denied", "waiting open"}},
		{"list --session " + running + " --rows",
			[]string{"started open", "started done", "proxied done", "rejected denied"}},
		{"list --event connector.proxy.started", []string{"started open", "started done", "started open", "started done"}},
		{"list --decision rejected", []string{"rejected denied", "rejected denied"}},
		{"tail -n 1", []string{"rejected denied", "waiting open"}},
		{"tail -n 2 --host a.example", []string{"proxied done", "rejected denied", "waiting open"}},
		{"list --until 2016-01-02", nil},
	} {
		if got := pathsOf(c.ok(strings.Fields("audit " + w.flags)...)); !slices.Equal(got, w.want) {
			t.Errorf("audit %s prints %q, want %q", w.flags, got, w.want)
		}
	}
	if n := strings.Count(c.ok("audit", "list", "--json", "--host", "a.example"), "\n"); n != 8 {
		t.Errorf("--json has %d rows, want all 8", n)
	}
}

// An agent hides no line behind requests that it leaves open.
func TestOpenRequestsHideNothing(t *testing.T) {
	c := newRunner(t)
	session := audit.NewID()
	rows := exchangeRows(session)
	for i := range 12 {
		open := rows[1]
		open.Host, open.Path = "b.example", "/"+strconv.Itoa(i)
		open.Fields = map[string]any{"request_id": session + open.Path}
		rows = append(rows, open)
	}
	c.write(rows...)
	out, errs, _ := c.run("audit", "tail")
	if got := pathsOf(out); !slices.Equal(got, []string{"proxied done", "rejected denied"}) {
		t.Errorf("audit tail prints of a.example %q", got)
	}
	if n := strings.Count(out, " waiting "); n != 10 || !strings.Contains(errs, "aileron: 3 more requests are under way") {
		t.Errorf("audit tail has %d lines of requests under way, and the notes %q", n, errs)
	}
	for _, flags := range []string{"tail --host a.example", "list --limit 0 --host a.example"} {
		want := []string{"proxied done", "rejected denied", "waiting open"}
		if got := pathsOf(c.ok(strings.Fields("audit " + flags)...)); !slices.Equal(got, want) {
			t.Errorf("audit %s prints %q, want %q", flags, got, want)
		}
	}
}

// A request that ended after --until had started before.
func TestARequestIsListedThatEndedLater(t *testing.T) {
	c := newRunner(t)
	rows := exchangeRows(audit.NewID())
	for i := range rows {
		rows[i].TS = time.Date(2026, 11, 20, 12, i, 0, 0, time.UTC)
	}
	c.write(rows...)
	for flags, want := range map[string][]string{
		"--until 2026-11-20T12:02:30Z":                              {"started done", "waiting open"},
		"--until 2026-11-20T12:03:30Z":                              {"proxied done", "waiting open"},
		"--since 2026-11-20T12:02:20Z --until 2026-11-20T12:02:30Z": {"started done", "waiting open"},
	} {
		if got := pathsOf(c.ok(strings.Fields("audit list " + flags)...)); !slices.Equal(got, want) {
			t.Errorf("audit list %s prints %q, want %q", flags, got, want)
		}
	}
}

// tail -f prints a request when it ends, and before only if it waits.
func TestTailShowsWhatWaits(t *testing.T) {
	c := newRunner(t)
	session := audit.NewID()
	rows := exchangeRows(session)
	c.write(rows[:1]...)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var wrote sync.WaitGroup
	defer wrote.Wait()
	out := &countedLines{wanted: 1}
	out.reached = func() {
		out.with, out.wanted, out.reached = "waiting", 1, cancel
		wrote.Go(func() { c.write(rows[1:]...) })
	}
	a := cli.New(&console.Console{Stdout: out, Stderr: io.Discard}, &home.Dir{})
	if code := Main(ctx, []string{"--home", c.Flag, "audit", "tail", "-f"}, a); code != 0 {
		t.Fatalf("audit tail -f ends with %d", code)
	}
	want := []string{"proxied done", "rejected denied", "waiting open"}
	if got := pathsOf(out.text.String()); !slices.Equal(got, want) {
		t.Errorf("it prints %q, want %q", got, want)
	}
}
