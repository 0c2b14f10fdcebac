package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	launchcmd "github.com/ALRubinger/aileron/cmd/aileron/internal/launch"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/home"
	"github.com/ALRubinger/aileron/internal/launch"
	"github.com/ALRubinger/aileron/internal/report"
	"github.com/ALRubinger/aileron/internal/session"
)

// A flag comes before config.toml, and that before the default.
func TestTheStateIsKeptUnlessAFlagOrTheConfigurationSaysNo(t *testing.T) {
	for _, c := range []struct {
		config      string
		given, flag bool
		want        bool
	}{
		{"", false, true, true},
		{"[sandbox]\nkeep = false\n", false, true, false},
		{"[sandbox]\nkeep = true\n", false, true, true},
		{"[sandbox]\nkeep = false\n", true, true, true},
		{"", true, false, false},
		{"[sandbox]\nkeep = true\n", true, false, false},
	} {
		a := cli.New(&console.Console{}, &home.Dir{Flag: t.TempDir()})
		must.Do(t, os.WriteFile(filepath.Join(a.Flag, "config.toml"), []byte(c.config), 0o600))
		if got, err := launchcmd.Keeps(a, &cli.SandboxOptions{Keep: c.flag,
			KeepGiven: c.given}); got != c.want || err != nil {
			t.Errorf("with %q, and the flag (%v) as %v: keeps = %v, %v", c.config, c.given, c.flag, got, err)
		}
	}
}

// Without a sandbox the agent's state is that on this host, whatever a flag says.
func TestKeepingStateIsForASandbox(t *testing.T) {
	c := newRunner(t)
	for _, flag := range []string{"--keep", "--keep=false"} {
		_, errs, code := c.run("launch", "--sandbox=off", flag, "claude")
		if code != 2 || !strings.Contains(errs, "the agent uses its state on this host") {
			t.Errorf("%s: exit %d, %q", flag, code, errs)
		}
	}
}

// What an agent asks for by itself is one line, and the way on is the one that
// works on this host.
func TestTheReportTellsTheAgentsOwnRequestsApart(t *testing.T) {
	tip := session.Refusal{Reason: "host_not_allowed", Method: "GET", Host: "raw.githubusercontent.com", Port: 443,
		Path: "/openai/codex/main/announcement_tip.toml", AuditID: "01A", Requests: 2}
	other := session.Refusal{Reason: "host_not_allowed", Host: "evil.example", Port: 443, AuditID: "01B", Requests: 1}
	var errs bytes.Buffer
	a := cli.New(&console.Console{Stderr: &errs}, &home.Dir{})
	report.Print(a.Console, launch.Ended{Session: "01X", Agent: "codex", Duration: time.Second, Kept: true,
		Requests: session.Tally{
			Rejected: 3, Refusals: []session.Refusal{other}, Optional: []session.Refusal{tip}}})
	for _, want := range []string{
		"  unneeded    2 refused requests by codex itself (raw.githubusercontent.com): it works without\n",
		"  refused     1 × evil.example: host_not_allowed\n", "aileron allow evil.example\n", "3 refused or failed",
		"  go on       aileron launch codex -- resume --last\n",
	} {
		if !strings.Contains(errs.String(), want) {
			t.Errorf("the report has no %q:\n%s", want, &errs)
		}
	}
	if strings.Contains(errs.String(), "connector install") {
		t.Errorf("the report says how to allow what is not needed:\n%s", &errs)
	}
	errs.Reset()
	report.Print(a.Console, launch.Ended{Session: "01X", Agent: "codex"})
	if strings.Contains(errs.String(), "go on") || strings.Contains(errs.String(), "unneeded") {
		t.Errorf("the report of a session that kept nothing:\n%s", &errs)
	}
}
