package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

// What is captured of a session is not for its command.
func TestACaptureIsOutsideOfWhatTheSandboxSees(t *testing.T) {
	c := newRunner(t)
	project, shared, other := t.TempDir(), t.TempDir(), t.TempDir()
	link, inside := filepath.Join(other, "link"), filepath.Join(project, "sub", "dir")
	must.Do(t, os.MkdirAll(inside, 0o700))
	must.Do(t, os.Symlink(shared, link))
	held := must.Get(os.Open(inside))(t)
	defer held.Close()
	for _, at := range []string{
		filepath.Join(project, "x.har"), filepath.Join(inside, "x.har"), filepath.Join(shared, "x.har"),
		filepath.Join(link, "x.har"), other + "/../" + filepath.Base(project) + "/x.har",
		project + "/../" + filepath.Base(project) + "/sub/x.har", fmt.Sprintf("/proc/self/fd/%d/x.har", held.Fd()),
		"/proc/self/root" + project + "/x.har",
	} {
		out, errs, code := c.run("sandbox", "run", "--dir", project, "--mount", shared, "--capture", at, "--", "true")
		if code != 2 || !strings.Contains(errs, "which the sandbox could read") {
			t.Errorf("--capture %s: exit %d, %s%s", at, code, out, errs)
		}
	}
	missing := filepath.Join(t.TempDir(), "none", "x.har")
	_, errs, code := c.run("sandbox", "run", "--dir", project, "--capture", missing, "--", "true")
	if code != 2 || !strings.Contains(errs, "--capture is "+missing) {
		t.Errorf("a directory that does not exist: exit %d, %s", code, errs)
	}
}

// The sandbox of a worktree sees the repository that it belongs to as well.
func TestACaptureIsOutsideOfTheRepositoryOfAWorktree(t *testing.T) {
	c := newRunner(t)
	root := t.TempDir()
	repository, worktree := filepath.Join(root, "repository"), filepath.Join(root, "worktree")
	for _, args := range [][]string{{"init", "-q", repository},
		{"-C", repository, "-c", "user.name=a", "-c", "user.email=b", "commit", "-q", "--allow-empty", "-m", "first"},
		{"-C", repository, "worktree", "add", "-q", worktree}} {
		if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v: %s", args, err, out)
		}
	}
	at := filepath.Join(repository, ".git", "x.har")
	_, errs, code := c.run("sandbox", "run", "--dir", worktree, "--capture", at, "--", "true")
	if code != 2 || !strings.Contains(errs, "which the sandbox could read") {
		t.Errorf("--capture %s: exit %d, %s", at, code, errs)
	}
}
