package page

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
)

// hostile is text that must be shown as text, and must not mislead its reader.
const hostile = "/<img src=x " +
	"onerror=document.title='owned'><script>document.title='owned'</script>/\u202egnp.exe/\x1b[31m"

// writeLog writes a log of a few sessions, with rows that are hostile, and returns its path.
func writeLog(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "audit.db")
	appendRows(t, path, someRows()...)
	return path
}

// appendRows commits rows to the log at path.
func appendRows(t *testing.T, path string, rows ...audit.Row) {
	t.Helper()
	l := must.Get(audit.Open(path, audit.Options{}))(t)
	for _, r := range rows {
		must.Get(l.Append(t.Context(), r))(t)
	}
	must.Do(t, l.Close())
}

// request returns the two rows of a request.
func request(session, id, method, host, path, operation string, status int) []audit.Row {
	r := audit.Row{Event: audit.EventProxyStarted, SessionID: session, Source: audit.SourceConnectTLS,
		ConnectorFQN: "github://alrubinger/aileron-connector-github", ConnectorVersion: "0.2.0", Tool: "github",
		Operation: operation, Binding: "bearer/github/work", Method: method, Scheme: "https", Host: host, Port: 443,
		Path: path, HTTPVersion: "HTTP/1.1", Fields: map[string]any{"request_id": id}}
	out := r
	out.Event, out.Decision, out.Status = audit.EventProxyProxied, audit.DecisionProxied, status
	out.ResponseBytes, out.DurationUS = 18_342, 84_112
	return []audit.Row{r, out}
}

func refused(session, host, path, reason string) audit.Row {
	return audit.Row{Event: audit.EventSandboxRejected, SessionID: session, Source: audit.SourceConnectTLS,
		Decision: audit.DecisionRejected, Reason: reason, Method: "GET", Scheme: "https", Host: host, Port: 443, Path: path,
		HTTPVersion: "HTTP/1.1", Status: 403, DurationUS: 410, Fields: map[string]any{"request_id": audit.NewID()}}
}

// The sessions of someRows.
var (
	claude = audit.NewID()
	codex  = audit.NewID()
)

func someRows() []audit.Row {
	begin := time.Now().Add(-3 * time.Hour)
	var rows []audit.Row
	for i, s := range []string{claude, codex} {
		rows = append(rows, audit.Row{Event: audit.EventSessionStarted, SessionID: s, Source: audit.SourceLauncher,
			Fields: map[string]any{"agent": []string{"claude", "codex"}[i], "mode": "sandbox", "sealed": true}})
	}
	for i := range 140 {
		session := []string{claude, claude, codex}[i%3]
		rows = append(rows, request(session, audit.NewID(), []string{"GET", "GET", "POST"}[i%3], "api.github.com",
			fmt.Sprintf("/repos/alrubinger/aileron/issues/%d", i), []string{"issues.get", "repos.read", "issues.comment"}[i%3],
			[]int{200, 200, 201}[i%3])...)
		if i%9 == 0 {
			rows = append(rows, refused(session, []string{"telemetry.example", "pypi.org", "api.github.com"}[i/9%3],
				"/v1/collect", []string{"host_not_allowed", "host_not_allowed", "no_operation"}[i/9%3]))
		}
	}
	strange := refused(codex, "evil.example", hostile, "path_not_allowed")
	strange.Fields["note"] = strings.Repeat("A", 10<<20)
	redacted := request(claude, audit.NewID(), "GET", "api.github.com", "/user", "user.get", 200)
	redacted[1].Redactions = 2
	redacted[1].Fields = map[string]any{"request_id": redacted[0].Fields["request_id"],
		"dropped_headers": []string{"Authorization"}}
	rows = append(append(rows, strange), redacted...)
	rows = append(rows, audit.Row{Event: audit.EventSessionEnded, SessionID: codex, Source: audit.SourceLauncher,
		Fields: map[string]any{"agent": "codex", "mode": "sandbox", "exit_code": 0}})
	for i := range rows {
		rows[i].TS = begin.Add(time.Duration(i*i) * 80 * time.Millisecond)
	}
	return rows
}
