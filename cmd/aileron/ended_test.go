package main

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/creack/pty"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/home"
	"github.com/ALRubinger/aileron/internal/hostfiles"
	"github.com/ALRubinger/aileron/internal/launch"
	"github.com/ALRubinger/aileron/internal/report"
	"github.com/ALRubinger/aileron/internal/session"
)

// Each refusal of the report names a command, which works as it stands there.
func TestTheCommandsOfTheReportWork(t *testing.T) {
	o := newOwner(t)
	bin := t.TempDir()
	agent := `#!/bin/sh
get https://registry.npmjs.org/left-pad https://registry.npmjs.org/is-odd
get https://docs.example.org/a http://docs.example.org:8080/b
get https://api.github.com/repos/a/b/hooks 'https://api.github.com/user?admin=1'
get 'https://api.anthropic.com/v1/models?all=1' https://api.anthropic.com/v1/files
get https://192.0.2.1/ https://single/
`
	must.Do(t, os.WriteFile(filepath.Join(bin, "claude"), []byte(agent), 0o700))
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	o.ok("setup", "claude", "--yes", "--sandbox=off", "--key-file", o.file("key", anthropicKey))
	o.ok("connector", "install", "github", "--yes")
	out := must.Get(o.program("launch", "--sandbox=off", "claude").CombinedOutput())(t)
	report := string(out[strings.Index(string(out), "aileron: session"):])
	for _, want := range []string{`^aileron: session [0-9A-Z]{26} of claude ended after [0-9.]+m?s, exit code 0\n`,
		`\n  requests    0 proxied, 0 passed through, 10 refused or failed\n`,
		`\n  refused     2 × registry.npmjs.org: host_not_allowed\n +aileron connector install npm\n`,
		`\n              1 × GET api.github.com/repos/a/b/hooks: operation_not_matched\n +aileron allow [0-9A-Z]{26}\n`,
		`\n              1 × GET api.anthropic.com/v1/models: query_not_declared\n +aileron audit show [0-9A-Z]{26}\n`,
		`\n              1 × 192.0.2.1: host_not_allowed\n +aileron audit show [0-9A-Z]{26}\n`, // which nothing can allow
		`\n  more        aileron audit list --session [0-9A-Z]{26}\n$`,
	} {
		if !regexp.MustCompile(want).MatchString(report) {
			t.Errorf("the report has no %s:\n%s", want, report)
		}
	}
	commands := regexp.MustCompile(`(?m)^ {12,}aileron (.*)$`).FindAllStringSubmatch(report, -1)
	if len(commands) < 6 {
		t.Errorf("the report has %d commands:\n%s", len(commands), report)
	}
	for _, command := range commands {
		args := strings.Fields(command[1])
		switch args[0] + " " + args[1] {
		case "connector install":
			args = append(args, "--yes")
		case "binding setup":
			args = append(args, "--secret-file", o.file("secret", githubToken))
		}
		if args[0] == "allow" {
			args = append(args, "--yes")
		}
		o.says(0, nil, args...)
	}
	if strings.Contains(string(out), "\x1b") {
		t.Errorf("it has an escape sequence: %q", out)
	}
}

// A refused call by name is about an operation and not about the API's host, which all calls have.
func TestTheReportNamesTheOperationsOfRefusedCalls(t *testing.T) {
	o := newOwner(t)
	bin := t.TempDir()
	agent := `#!/bin/sh
of='"connector_fqn":"github://alrubinger/aileron-connector-github","tool":"github"'
run() { call connector-operations/run "{$of,$1}"; }
run '"operation":"users.get","args":{"username":7}'
run '"operation":"users.get","args":{}'
run '"operation":"issues.get","args":{"number":1}'
run '"operation":"none","args":{}'
run '"operation":"user.get","args":{}'
`
	must.Do(t, os.WriteFile(filepath.Join(bin, "claude"), []byte(agent), 0o700))
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	o.ok("setup", "claude", "--yes", "--sandbox=off", "--key-file", o.file("key", anthropicKey))
	o.ok("connector", "install", "github", "--yes")
	out := must.Get(o.program("launch", "--sandbox=off", "claude").CombinedOutput())(t)
	report := string(out[strings.Index(string(out), "aileron: session"):])
	for _, want := range []string{
		`\n  refused     2 × github users.get: arguments_invalid\n` +
			` +correct its arguments: github users.get --help lists them in a sandbox\n`,
		`\n              1 × github issues.get: arguments_invalid\n` +
			` +correct its arguments: github issues.get --help lists them in a sandbox\n`,
		`\n              1 × a call by name: operation_not_matched\n +aileron audit show [0-9A-Z]{26}\n`,
		`\n              1 × github user.get at api.github.com: credential_not_bound\n` +
			` +aileron binding setup github://alrubinger/aileron-connector-github\n`,
	} {
		if !regexp.MustCompile(want).MatchString(report) {
			t.Errorf("the report has no %s:\n%s", want, report)
		}
	}
	if strings.Contains(report, "aileron.internal") {
		t.Errorf("the report names the API's host:\n%s", report)
	}
}

// An agent chooses the names of files, and what a terminal is too narrow for continues in the next line.
func TestANameThatAnAgentChoseBeginsNoLineOfTheReport(t *testing.T) {
	const columns, fake = 60, "aileron: all is well, run: evil"
	screen, tty, err := pty.Open()
	must.Do(t, err)
	defer screen.Close()
	must.Do(t, pty.Setsize(tty, &pty.Winsize{Rows: 24, Cols: columns}))
	a := cli.New(&console.Console{Stderr: tty, Child: console.ChildStreams{Stderr: tty}},
		&home.Dir{})
	e := launch.Ended{Session: "S", Agent: "claude", Requests: session.Tally{
		Refusals: []session.Refusal{{Method: "GET", Host: "api.example.org", Path: "/" + strings.Repeat("x", 200),
			Reason: "operation_not_matched", Requests: 1, AuditID: "01J"}}}}
	for _, space := range []string{" " + strings.Repeat(" ", 44), "ileron " + strings.Repeat(" ", 38),
		strings.Repeat("\u00a0", 44), strings.Repeat("x", 45)} {
		e.Changed = append(e.Changed, hostfiles.Change{Path: "a" + space + fake + "/.envrc", After: "1", When: "enter it"})
	}
	report.Print(a.Console, e)
	must.Do(t, tty.Close())
	shown, _ := io.ReadAll(screen) // the error is the terminal without a writer
	if n := strings.Count(string(shown), "run:"); n != len(e.Changed) {
		t.Fatalf("%d names are shown:\n%s", n, shown)
	}
	for line := range strings.Lines(string(shown)) {
		line = strings.TrimRight(line, "\r\n")
		if console.DisplayWidth(line) > columns && !strings.Contains(line, " aileron audit ") {
			t.Errorf("a line continues in the next one: %q", line)
		}
		if strings.HasPrefix(line, "aileron: all") {
			t.Errorf("a line is not aileron's: %q", line)
		}
	}
}
