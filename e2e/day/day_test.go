// Package day is a day's work from nothing: aileron setup in a fresh home, and Claude Code that clones, installs,
// builds, tests, commits and pushes in its sandbox, against stand-ins for the services under their real names.
package day

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/services"
	"github.com/ALRubinger/aileron/e2e/stub"
)

var binary string // the built aileron

func TestMain(m *testing.M) {
	os.Exit(harness.Run(m, "day", map[string]string{"aileron": "../../cmd/aileron"},
		func(dir string) { binary = filepath.Join(dir, "aileron") }))
}

// One day, from a home that does not exist to a commit that is pushed, and a look at it afterwards.
func TestADayFromSetupToAPushedCommit(t *testing.T) {
	t.Parallel()
	p := newPerson(t, "podman", readFile(t, "testdata/work.sh"))
	p.setUp("--github-graphql")
	p.installRegistries()
	const prompt = "Say in the comment of main.go what is summed, and push it"
	t.Cleanup(func() { p.must("sandbox", "prune", "--state", "--dir", p.project, "--yes", "--sandbox=podman") })
	r := p.launch(prompt)
	p.judgeWork(r)
	p.judgeReport(r)
	p.judgeRows()
	p.judgeSecrets(r)
	p.showDay(prompt, r)
	p.record()

	before := len(p.origin.Seen())
	if r := p.launch("What did you do?", "--continue"); r.code != 0 {
		t.Errorf("the next session ends with %d\n%s%s", r.code, r.out, r.err)
	}
	if !slices.ContainsFunc(p.origin.Seen()[before:], func(s stub.Seen) bool { return strings.Contains(s.Body, prompt) }) {
		t.Error("the next session does not go on with the conversation of the first")
	}
	p.judgeSecrets(r)
}

// judgeWork checks what the agent made: the steps' output in the project, and the commit at the code host.
func (p *person) judgeWork(r result) {
	p.t.Helper()
	log := readFile(p.t, filepath.Join(p.project, "work.log"))
	if r.code != 0 || !strings.Contains(r.out, "All done, says the stub.") || !strings.Contains(log, "telemetry") {
		p.t.Fatalf("the agent ends with %d\n%s%s\n%s", r.code, r.out, r.err, log)
	}
	for _, want := range []string{"added 1 package", "go: downloading golang.org/acme/tool", "ok 1 - a sum",
		"host_not_allowed"} {
		contains(p.t, "the work", log, want)
	}
	at := filepath.Join(p.project, "tool")
	got := p.git("-C", at, "log", "-1", "--format=%an <%ae> %cn: %s")
	if got != "Ada Person <ada@example.com> Ada Person: Say what is summed\n" {
		p.t.Errorf("the commit is by %q", got)
	}
	pushed := p.git("-C", p.origin.Repository("acme/tool.git"), "rev-parse", "better-comment")
	if head := p.git("-C", at, "rev-parse", "HEAD"); pushed != head {
		p.t.Errorf("the code host has %q, and the agent committed %q", pushed, head)
	}
}

// judgeReport checks what standard error says at the end.
func (p *person) judgeReport(r result) {
	p.t.Helper()
	contains(p.t, "the report", r.err, "exit code 0", "credentials", "github git.push", "anthropic messages.create",
		"refused", "telemetry.acme.example: host_not_allowed", "aileron allow telemetry.acme.example",
		"aileron audit list --session ")
}

// judgeRows checks that the log says who pushed: which session, with which binding.
func (p *person) judgeRows() {
	p.t.Helper()
	type row struct {
		Event, Operation, Binding, Host, Agent string
		Connector                              string `json:"connector_fqn"`
		Session                                string `json:"session_id"`
		Status                                 int
	}
	var ended, pushed string
	for _, r := range harness.Rows[row](p.t, p.must("audit", "list", "--json", "--limit", "0").out) {
		switch {
		case r.Event == "session.ended":
			ended = r.Session
		case r.Event == "connector.proxy.proxied" && r.Operation == "git.push" && r.Status == 200:
			pushed = r.Session
			if !strings.Contains(r.Binding, "github") || !strings.HasSuffix(r.Connector, "github") {
				p.t.Errorf("the push used %q of %q", r.Binding, r.Connector)
			}
		}
	}
	if pushed == "" || pushed != ended {
		p.t.Errorf("session %q pushed, and %q ended", pushed, ended)
	}
	p.must("audit", "verify")
}

// judgeSecrets searches all that a person or an agent could read for the secrets.
func (p *person) judgeSecrets(r result) {
	p.t.Helper()
	for _, secret := range []string{services.Token, services.Key} {
		if strings.Contains(r.out+r.err, secret[:16]) {
			p.t.Error("a secret is in the output")
		}
		found, err := exec.Command("grep", "-rlaF", secret, p.project, p.home).CombinedOutput()
		if code := exitCode(err); code != 1 || len(found) > 0 {
			p.t.Errorf("grep ends with %d: a secret is in %s", code, found)
		}
	}
	for _, s := range p.origin.Seen() {
		if strings.Contains(s.Body, services.Token) || strings.Contains(s.Body, services.Key) {
			p.t.Errorf("a secret is in the body of %s %s", s.Host, s.Path)
		}
	}
}

// The project of another user, a worktree, and an agent that writes what the host would run.
func TestProjectsOfOtherKinds(t *testing.T) {
	t.Parallel()
	t.Run("of another user", func(t *testing.T) {
		t.Parallel()
		p := newPerson(t, "podman", "")
		p.sh("git init -q && git commit -q --allow-empty -m one && chown -R 4321:4321 .")
		r := p.box(`set -eu; id -u; whoami; echo work >file; git add file; git commit -qm two; git log -1 --format=%ae
			touch ~/mine /tmp/mine; python3 -m venv .venv; npm --version >/dev/null`)
		if r.code != 0 || !strings.HasPrefix(r.out, "4321\n") || !strings.HasSuffix(r.out, "ada@example.com\n") {
			t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
		}
		if got := p.sh("stat -c %u file .git/refs/heads/*; find . -not -user 4321"); got != "4321\n4321\n" {
			t.Errorf("files are not those of the project's user: %s", got)
		}
	})
	t.Run("a worktree", func(t *testing.T) {
		t.Parallel()
		p := newPerson(t, "podman", "")
		main := filepath.Join(filepath.Dir(p.project), "main")
		p.sh(`rmdir "$PWD" && mkdir ../main && cd ../main && git init -q && git commit -q --allow-empty -m one &&
			git worktree add -q -b side "$OLDPWD"`)
		r := p.box(`set -eu; echo work >file; git add file; git commit -qm two; git status --short
			if echo evil >"$(git rev-parse --git-common-dir)/hooks/pre-commit"; then exit 9; fi`)
		if r.code != 0 {
			t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
		}
		if got := p.git("-C", main, "log", "-1", "--format=%s", "side"); got != "two\n" {
			t.Errorf("the branch ends with %q", got)
		}
	})
	t.Run("hostile to the host", func(t *testing.T) {
		t.Parallel()
		// A script: Claude Code itself asks before a command that names these files.
		p := newPerson(t, "podman", "sh test.sh")
		p.setUp()
		p.sh(`git init -q; git commit -q --allow-empty -m one; cat >test.sh <<'END'
echo evil >.git/hooks/pre-commit
git config core.fsmonitor ./evil; echo ./evil >.envrc; mkdir .vscode .husky; echo '{"tasks":[]}' >.vscode/tasks.json
echo evil >.husky/pre-commit; echo work >main.go; echo DAY-DONE >done
END`)
		before := p.sh("ls -lA --time-style=full-iso .git/hooks")
		t.Cleanup(func() { p.must("sandbox", "prune", "--state", "--dir", p.project, "--yes", "--sandbox=podman") })
		r := p.launch("Work")
		if after := p.sh("ls -lA --time-style=full-iso .git/hooks; cat done || :"); after != before+"DAY-DONE\n" {
			t.Errorf("the hooks were\n%s\nand are\n%s\n%s%s", before, after, r.out, r.err)
		}
		contains(t, "the report", r.err, "host files", ".git/config is ", "(core.fsmonitor)", ".envrc is new",
			".vscode/tasks.json is new", ".husky/pre-commit is new", "your host runs it when you")
		if strings.Contains(r.err, "main.go is") {
			t.Errorf("the report names what no host runs\n%s", r.err)
		}
	})
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func contains(t *testing.T, what, text string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(text, want) {
			t.Errorf("%s lacks %q:\n%s", what, want, text)
		}
	}
}

func exitCode(err error) int {
	if exit, ok := err.(*exec.ExitError); ok {
		return exit.ExitCode()
	}
	if err != nil {
		return -1
	}
	return 0
}
