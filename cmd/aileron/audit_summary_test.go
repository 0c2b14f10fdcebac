package main

import (
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/session"
)

// The outcomes that are not known are counted wherever a reader looks for a
// session's requests.
func TestUnknownOutcomesAreCounted(t *testing.T) {
	c := newRunner(t)
	row := func(event audit.Event, decision audit.Decision, session, request string) audit.Row {
		return audit.Row{Event: event, Decision: decision, SessionID: session, Host: "api.example",
			Fields: map[string]any{"request_id": request}}
	}
	counted := row(audit.EventSandboxRejected, audit.DecisionRejected, "01KILLED", "05")
	counted.Reason, counted.Fields["requests"] = audit.ReasonUnavailable, 40
	c.write(
		audit.Row{Event: audit.EventSessionStarted, SessionID: "01KILLED"},
		row(audit.EventProxyStarted, "", "01KILLED", "01"), row(audit.EventProxyProxied, audit.DecisionProxied, "01KILLED",
			"01"),
		row(audit.EventProxyStarted, "", "01KILLED", "02"), row(audit.EventProxyUnknown, "", "01KILLED", "02"),
		row(audit.EventProxyStarted, "", "01KILLED", "03"),
		audit.Row{Event: audit.EventSessionStarted, SessionID: "01OTHER"},
		row(audit.EventProxyStarted, "", "01OTHER", "04"),
		counted,
	)
	for _, w := range []struct {
		args    []string
		unknown int64
		open    int
	}{
		{nil, 1, 2}, {[]string{"--session", "01KILLED"}, 1, 1}, {[]string{"--session", "01OTHER"}, 0, 1}, {[]string{"--until",
			"1h"}, 0, 0},
		{[]string{"--host", "api.example"}, 1, 2}, {[]string{"--host", "other.example"}, 0, 0}, {[]string{"--decision",
			"rejected"}, 0, 0},
	} {
		s := decode[audit.Summary](t, c.ok(append([]string{"audit", "summary", "--json"}, w.args...)...))
		if s.Unknown != w.unknown || s.Open != w.open {
			t.Errorf("audit summary %v counts %+v, want %d unknown and %d without an outcome", w.args, s, w.unknown, w.open)
		}
	}
	s := decode[audit.Summary](t, c.ok("audit", "summary", "--json"))
	if s.Rows != 9 || s.Events[string(audit.EventProxyStarted)] != 4 || s.Decisions["proxied"] != 1 ||
		s.Reasons[audit.ReasonUnavailable] != 1 || s.Counted != 40 {
		t.Errorf("audit summary counts %+v", s)
	}
	verify := decode[audit.Report](t, c.ok("audit", "verify", "--json"))
	if !verify.OK || verify.Unknown != 1 || verify.Open != 2 {
		t.Errorf("audit verify counts %+v", verify)
	}
	session := decode[session.State](t, c.ok("session", "show", "01KILLED", "--json"))
	if session.Unknown != 1 || session.Open != 1 {
		t.Errorf("session show counts %+v", session)
	}
	for _, w := range []struct {
		args []string
		want string
	}{
		{[]string{"audit", "summary"}, "40  refused requests without an event of their own"},
		{[]string{"audit", "summary"}, "1   requests with an unknown outcome"},
		{[]string{"session", "show", "01KILLED"}, "unknown outcomes: 1"},
		{[]string{"session", "show", "01KILLED"}, "requests without an outcome: 1"},
		{[]string{"session", "list"}, "unknown outcomes: 1"},
		{[]string{"audit", "list"}, "audit_unavailable  40 requests"},
	} {
		if out := c.ok(w.args...); !strings.Contains(out, w.want) {
			t.Errorf("%v prints\n%swant %q in it", w.args, out, w.want)
		}
	}
	_, errs, _ := c.run("audit", "verify")
	if !strings.Contains(errs, "unknown outcomes: 1") || !strings.Contains(errs, "requests without an outcome: 2") {
		t.Errorf("audit verify says %q", errs)
	}
}
