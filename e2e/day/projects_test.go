package day

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
)

// A worktree, and an agent that writes what the host would run.
func TestProjectsOfOtherKinds(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"podman", "docker"} {
		t.Run("a worktree on "+engine, func(t *testing.T) { t.Parallel(); worktree(t, engine) })
		t.Run("hostile to the host on "+engine, func(t *testing.T) { t.Parallel(); hostile(t, engine) })
	}
}

// A worktree's repository lies elsewhere.
func worktree(t *testing.T, engine string) {
	harness.PodmanIsEnough(t, engine)
	p := newPerson(t, cell{agent: "claude", engine: engine}, "")
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
}

// An agent may write what the host would run.
func hostile(t *testing.T, engine string) {
	harness.PodmanIsEnough(t, engine)
	// A script: Claude Code itself asks before a command that names these files.
	p := newPerson(t, cell{agent: "claude", engine: engine}, "sh test.sh")
	p.setUp()
	p.sh(`git init -q; git commit -q --allow-empty -m one; cat >test.sh <<'END'
echo evil >.git/hooks/pre-commit
git config core.fsmonitor ./evil; echo ./evil >.envrc; mkdir .vscode .husky; echo '{"tasks":[]}' >.vscode/tasks.json
echo evil >.husky/pre-commit; echo work >main.go; echo DAY-DONE >done
END`)
	before := p.sh("ls -lA --time-style=full-iso .git/hooks")
	p.forget()
	r := p.launch(p.agent.ask("Work"))
	if after := p.sh("ls -lA --time-style=full-iso .git/hooks; cat done || :"); after != before+"DAY-DONE\n" {
		t.Errorf("the hooks were\n%s\nand are\n%s\n%s%s", before, after, r.out, r.err)
	}
	contains(t, "the report", r.err, "host files", ".git/config is ", "(core.fsmonitor)", ".envrc is new",
		".vscode/tasks.json is new", ".husky/pre-commit is new", "your host runs it when you")
	if strings.Contains(r.err, "main.go is") {
		t.Errorf("the report names what no host runs\n%s", r.err)
	}
}
