package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/e2e/stub"
)

// What a sandbox leaves in the project, the person's own programs run afterwards.
func TestWhatTheHostWouldRunIsProtectedOrNamed(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"podman", "docker"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			harness.PodmanIsEnough(t, engine)
			u := newUser(t, stub.Script{})
			u.engine = engine
			if out, err := exec.Command("git", "init", "-q", u.project).CombinedOutput(); err != nil {
				t.Fatalf("git init: %v %s", err, out)
			}
			hook := filepath.Join(u.project, ".git/hooks/pre-commit")
			must.Do(t, os.WriteFile(hook, []byte("#!/bin/sh\nexit 0\n"), 0o755))
			const evil = `
				.git/hooks/pre-commit; echo "the hook runs: $?"
				echo evil > .git/hooks/pre-commit; echo evil > .git/hooks/post-checkout
				rm -rf .git/hooks; touch .git/hooks/x
				echo "[core]
					fsmonitor = ./evil" >> .git/config
				echo ./evil > .envrc; echo work > main.go`
			r := u.box(evil)
			contains(t, "the output", r.out, "the hook runs: 0")
			if n := strings.Count(r.err, "Read-only file system"); n < 3 {
				t.Errorf("%d writes to the hooks were refused: %s", n, r.err)
			}
			if got := u.changedHostFiles(); !slices.Equal(got, []string{".envrc", ".git/config"}) {
				t.Errorf("session.ended names %v", got)
			}
			if text, err := os.ReadFile(hook); err != nil || strings.Contains(string(text), "evil") {
				t.Errorf("the hook: %q, %v", text, err)
			}

			r = u.box("echo 'x = y' >> .git/config; echo evil > .envrc; echo more > main.go; mkdir .vscode && echo {} > "+
				".vscode/tasks.json",
				"--protect")
			if n := strings.Count(r.err, "Read-only file system"); n != 2 {
				t.Errorf("%d writes to protected files were refused: %s", n, r.err)
			}
			if got := u.changedHostFiles(); !slices.Equal(got, []string{".vscode/tasks.json"}) {
				t.Errorf("session.ended names %v", got)
			}
			if text, _ := os.ReadFile(filepath.Join(u.project, "main.go")); string(text) != "more\n" {
				t.Errorf("the work: %q", text)
			}

			// Of a directory that is renamed, the hooks would be others.
			r = u.box(`mv .git old; mv .vscode old; rmdir .git; echo $?
				mv .git/refs .git/old && mv .git/old .git/refs && echo work`, "--protect")
			contains(t, "the output", r.out, "1\nwork")
			if n := strings.Count(r.err, "Device or resource busy"); n != 3 {
				t.Errorf("%d times something was kept from being renamed: %s", n, r.err)
			}
			if _, err := os.Stat(filepath.Join(u.project, "old")); err == nil {
				t.Error("something was renamed")
			}

			// Hooks that are not there are not made, in the sandbox or on the host.
			must.Do(t, os.RemoveAll(filepath.Dir(hook)))
			r = u.box("mv .git old; mkdir -p .git/hooks; echo evil > .git/hooks/pre-commit; echo more >> main.go")
			contains(t, "the errors", r.err, "Read-only file system")
			contains(t, "the errors", r.err, "Device or resource busy")
			if _, err := os.Stat(filepath.Dir(hook)); err == nil {
				t.Error("there is a directory of hooks")
			}
		})
	}
}

// changedHostFiles returns the paths that the last session.ended names.
func (u *user) changedHostFiles() []string {
	u.t.Helper()
	rows := u.rows("--event", "session.ended")
	fields, _ := rows[len(rows)-1]["fields"].(map[string]any)
	list, _ := fields["host_files"].([]any)
	var paths []string
	for _, entry := range list {
		change, _ := entry.(map[string]any)
		if change["before"] == change["after"] {
			u.t.Errorf("no change: %v", change)
		}
		paths = append(paths, fmt.Sprint(change["path"]))
	}
	return paths
}
