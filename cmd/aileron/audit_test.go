package main

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
)

// write puts rows into the log of a home.
func (c runner) write(rows ...audit.Row) {
	c.t.Helper()
	l, err := audit.Open(filepath.Join(c.Flag, "audit.db"), audit.Options{})
	if err != nil {
		c.t.Fatal(err)
	}
	for _, r := range rows {
		if _, err := l.Append(context.Background(), r); err != nil {
			c.t.Fatal(err)
		}
	}
	must.Do(c.t, l.Close())
}

// A filter that can select nothing is a mistake, not an empty answer.
func TestAFilterThatCannotBeIsAWrongUsage(t *testing.T) {
	c := newRunner(t)
	c.write(audit.Row{Event: audit.EventVaultLocked})
	for _, verb := range []string{"tail", "list", "export"} {
		for _, w := range []struct {
			flags []string
			want  string
		}{
			{[]string{"--decision", "foo"},
				`--decision is "foo"; it must be proxied, passthrough, rejected, upgrade or disabled`},
			{[]string{"--event", "foo"}, "session.started, session.ended, session.grants_changed, binding.created"},
			{[]string{"--since", "garbage"}, `--since is "garbage"; it must be a date such as 2026-11-27, a time of day`},
			{[]string{"--until", "8"}, `--until is "8"; it has no unit; hint: write 8m, 8h or 8d`},
			{[]string{"--limit", "-1"}, "--limit is -1; it must not be negative"},
		} {
			out, errs, code := c.run(append([]string{"audit", verb}, w.flags...)...)
			if code != 2 || out != "" || !strings.Contains(errs, w.want) {
				t.Errorf("audit %s %q ends with %d: %q, %q; want 2 and %q", verb, w.flags, code, out, errs, w.want)
			}
		}
		for _, flags := range [][]string{{"--decision", "upgrade"}, {"--event", string(audit.EventBindingRevoked)},
			{"--host", "nowhere.example"}} {
			if out, _, code := c.run(append([]string{"audit", verb}, flags...)...); code != 0 ||
				strings.Contains(out, "vault.locked") {
				t.Errorf("audit %s %q ends with %d and prints %q", verb, flags, code, out)
			}
		}
	}
	for flags, want := range map[string]string{"audit tail -n -4": "--lines is -4", "audit tail -n 0": "--lines is 0",
		"audit export --format xml": `--format is "xml"; it must be jsonl, csv or har`} {
		if _, errs, code := c.run(strings.Fields(flags)...); code != 2 || !strings.Contains(errs, want) {
			t.Errorf("%s ends with %d: %s", flags, code, errs)
		}
	}
}

func TestAnEmptyResultIsReported(t *testing.T) {
	c := newRunner(t)
	for _, args := range []string{"audit list", "audit tail", "audit export", "session list", "connector list",
		"binding list"} {
		if out, errs, code := c.run(strings.Fields(args)...); code != 0 || out != "" || strings.Count(errs, "\n") != 1 {
			t.Errorf("%s ends with %d: %q, %q; want one line on stderr", args, code, out, errs)
		}
	}
	c.write(audit.Row{Event: audit.EventVaultLocked})
	if out, errs, code := c.run("audit", "list", "--host", "nowhere.example"); code != 0 || out != "" || errs == "" {
		t.Errorf("no row: it ends with %d: %q, %q", code, out, errs)
	}
}

// refusedRow returns a row of a request that was refused.
func refusedRow(method, host string, port int, path, reason string, fields map[string]any) audit.Row {
	return audit.Row{Event: audit.EventSandboxRejected, Decision: audit.DecisionRejected, Reason: reason, Status: 400,
		Method: method, Host: host, Port: port, Path: path, Fields: fields}
}

func TestARowNamesItsSubject(t *testing.T) {
	c := newRunner(t)
	c.write(
		audit.Row{Event: audit.EventSessionStarted, Fields: map[string]any{"agent": "opencode", "mode": "podman"}},
		audit.Row{Event: audit.EventProxyProxied, Decision: audit.DecisionProxied, Method: "GET", Host: "api.tracker.example",
			Port: 8443, Path: "/v1", Status: 200},
		audit.Row{Event: audit.EventBindingCreated, Binding: "bearer/tracker/work", ConnectorFQN: "github://acme/tracker"},
		audit.Row{Event: audit.EventConnectorRemoved, ConnectorFQN: "github://acme/tracker", ConnectorVersion: "1.0.0"},
		audit.Row{Event: audit.EventSandboxDisabled, Decision: audit.DecisionDisabled, Reason: "user_opt_out",
			Fields: map[string]any{"cause": "--sandbox-proxy=off"}},
		audit.Row{Event: audit.EventSessionEnded, Fields: map[string]any{"cause": "asked\x1b[2J to stop"}},
		refusedRow("CONNECT", "api.tracker.example", 443, "api.tracker.example", "malformed_request", nil),
		refusedRow("GET", "api.tracker.example", 80, "/v1", "host_not_allowed", nil),
		refusedRow("EHLO", "mail.example", 25, "relay", "malformed_request", nil),
		refusedRow("CONNECT", "api.tracker.example", 0, "", "no_request",
			map[string]any{"connections": 296, "ports": "96-400", "hosts": []string{"api.tracker.example"}}),
		refusedRow("CONNECT", "", 0, "", "no_request",
			map[string]any{"connections": 41, "ports": "1-65535", "hosts": []string{"192.0.2.1", "b.example"}}),
		refusedRow("", "", 0, "", "no_request", map[string]any{"connections": 3000}),
	)
	lines := strings.Split(c.ok("audit", "list"), "\n")
	for i, want := range []string{"session.started       podman opencode",
		"proxied   200  GET api.tracker.example:8443/v1",
		"binding.created       bearer/tracker/work",
		"connector.removed       github://acme/tracker@1.0.0", "disabled       --sandbox-proxy=off  user_opt_out",
		`session.ended       asked\u001b[2J to stop`, "audit.checkpoint",
		"CONNECT api.tracker.example  malformed_request", "GET api.tracker.example:80/v1  host_not_allowed",
		"EHLO mail.example:25 relay  malformed_request",
		"CONNECT api.tracker.example  no_request  296 connections, ports 96-400",
		"CONNECT  no_request  41 connections, ports 1-65535, hosts 192.0.2.1 b.example",
		"  400    no_request  3000 connections"} {
		if !strings.HasSuffix(lines[i], want) {
			t.Errorf("the line is %q, want the end %q", lines[i], want)
		}
	}
}
