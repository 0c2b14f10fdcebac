package approvals

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

// What a program about approvals finds by its environment is nothing that an agent has written since.
func TestNoProgramIsFoundWhereASandboxWrites(t *testing.T) {
	root := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	project, mine := filepath.Join(root, "project"), filepath.Join(root, "mine")
	must.Do(t, os.MkdirAll(filepath.Join(project, "bin"), 0o700))
	must.Do(t, os.MkdirAll(mine, 0o700))
	must.Do(t, os.Symlink(filepath.Join(project, "bin"), filepath.Join(root, "link")))
	path := strings.Join([]string{project + "/bin", root + "/link", "node_modules/.bin", "", mine, "/usr/bin", "/bin"},
		":")
	said := filepath.Join(root, "said")
	program := func(at, who string) {
		must.Do(t, os.WriteFile(at, []byte("#!/bin/sh\necho "+who+" >>"+said+"\n"), 0o700))
	}
	program(filepath.Join(mine, "tell"), "mine")
	program(filepath.Join(mine, "inner"), "mine")
	must.Do(t, os.WriteFile(filepath.Join(mine, "outer"), []byte("#!/usr/bin/env inner\n"), 0o700))
	t.Setenv("PATH", path)
	e := NewEnviron([]string{"A=b", "PATH=" + path, "PYTHONPATH=/usr/lib/x:" + project + "/src", "PWD=" + project,
		"NODE_OPTIONS=--require=" + project + "/x.js", "BASH_ENV=" + root + "/link/x", "OTHER=" + project + "s/x:" + mine})
	p := Programs{Notify: []string{"tell"}, Environ: e}
	e.Exclude([]string{filepath.Join(root, "other"), project})
	must.Do(t, p.CheckOutside([]string{project}))
	want := []string{"A=b", "PATH=" + mine + ":/usr/bin:/bin", "OTHER=" + project + "s/x:" + mine}
	if got := e.list(); !slices.Equal(got, want) {
		t.Errorf("the environment is %q, want %q", got, want)
	}
	program(filepath.Join(project, "bin/tell"), "agent") // by the agent, after the look
	program(filepath.Join(project, "bin/inner"), "agent")
	for _, command := range []string{"tell", filepath.Join(mine, "outer")} {
		n := NewNotifier(Notifier{Command: []string{command}, Environ: e})
		must.Do(t, n.run(context.Background(), "text"))
	}
	cmd := exec.Command("/bin/sh", "-c", filepath.Join(mine, "outer"))
	must.Do(t, e.Start(func(c *exec.Cmd) error { return c.Run() })(cmd))
	if got := string(must.Get(os.ReadFile(said))(t)); got != "mine\nmine\nmine\n" {
		t.Errorf("what ran was %q", got)
	}
	if _, err := e.find("no-such-program"); err == nil {
		t.Error("a program that is nowhere is found")
	}
}
