package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/session"
)

// unclean is the cause of a session whose process could not record one.
const unclean = "the process ended without closing the session"

// Why a session ended, or never began, is what show is asked for.
func TestSessionShowHasTheCause(t *testing.T) {
	c := newRunner(t)
	started := func(id string) audit.Row {
		return audit.Row{Event: audit.EventSessionStarted, SessionID: id, Fields: map[string]any{"agent": "curl",
			"mode": "podman", "sealed": true}}
	}
	ended := func(id, reason, cause string) audit.Row {
		return audit.Row{Event: audit.EventSessionEnded, SessionID: id, Reason: reason, Fields: map[string]any{"exit_code": 1,
			"cause": cause}}
	}
	disabled := func(id, reason, cause string) audit.Row {
		return audit.Row{Event: audit.EventSandboxDisabled, SessionID: id, Decision: audit.DecisionDisabled, Reason: reason,
			Fields: map[string]any{"agent": "curl", "mode": "podman", "cause": cause}}
	}
	c.write(
		disabled("01REFUSED", "unsupported_sandbox_mode", "the engine runs elsewhere"),
		started("01OPTOUT"), disabled("01OPTOUT", "user_opt_out", "--sandbox-proxy=off"), ended("01OPTOUT", "",
			"the command ended"),
		started("01LACKS"), disabled("01LACKS", "preflight_failed", "there is no sh"), ended("01LACKS", "", "there is no sh"),
		started("01SWEPT"), ended("01SWEPT", "unclean", unclean),
		started("01KILLED"),
	)
	for id, want := range map[string][]string{
		"01REFUSED": {"state    refused\n", "agent    curl\n", "mode     podman\n",
			"disabled unsupported_sandbox_mode: the engine runs elsewhere\n"},
		"01OPTOUT": {"state    ended\n", "disabled user_opt_out: --sandbox-proxy=off\n", "cause    the command ended\n"},
		"01LACKS":  {"state    ended\n", "disabled preflight_failed: there is no sh\n", "cause    there is no sh\n"},
		"01SWEPT":  {"state    unclean\n", "cause    " + unclean + "\n"},
		"01KILLED": {"state    unclean\n", "cause    " + unclean + "\n"},
	} {
		out := c.ok("session", "show", id)
		for _, line := range want {
			if !strings.Contains(out, line) {
				t.Errorf("session show %s has no %q:\n%s", id, line, out)
			}
		}
	}
	s := decode[session.State](t, c.ok("session", "show", "01REFUSED", "--json"))
	if s.State != "refused" || s.Disabled == nil || s.Disabled.Reason != "unsupported_sandbox_mode" ||
		s.Disabled.Cause != "the engine runs elsewhere" {
		t.Errorf("as JSON it is %+v, %+v", s, s.Disabled)
	}
	if s := decode[session.State](t, c.ok("session", "show", "01SWEPT", "--json")); s.State != "unclean" ||
		s.Cause != unclean || s.Disabled != nil {
		t.Errorf("as JSON it is %+v", s)
	}
}

// A session that was killed before its first row has left its directory only.
func TestASessionOfWhichOnlyTheDirectoryIsLeftIsUnclean(t *testing.T) {
	c := newRunner(t)
	dir := filepath.Join(c.Flag, "sessions", "01LEFT")
	must.Do(t, os.MkdirAll(dir, 0o700))
	must.Do(t, os.WriteFile(filepath.Join(dir, "session.json"),
		[]byte(`{"id":"01LEFT","pid":1,"agent":"curl","mode":"podman"}`), 0o600))
	if out := c.ok("session", "show", "01LEFT"); !strings.Contains(out, "state    unclean\n") || !strings.Contains(out,
		"cause    "+unclean+"\n") {
		t.Errorf("session show prints\n%s", out)
	}
}
