package sandbox_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/sandbox"
	"github.com/ALRubinger/aileron/sandbox/engine"
)

// The next sandbox has what a sandbox left in its state, as every kind of user.
func TestAStateOutlivesItsSandbox(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e *sandbox.Engine) {
		home := t.TempDir()
		defer func() {
			if n, err := e.RemoveStates(t.Context(), sandbox.State{Home: home}); n == 0 || err != nil {
				t.Errorf("RemoveStates = %d, %v", n, err)
			}
		}()
		for name, prepare := range map[string]func(project string) error{
			"as the project's owner":  func(dir string) error { return os.Chown(dir, 1234, 1234) },
			"as root":                 func(string) error { return nil },
			"as the image's own user": func(dir string) error { return os.Chmod(dir, 0o777) },
		} {
			t.Run(name, func(t *testing.T) {
				var project string
				for i, want := range []string{"x\n", "xx\n", "xxx\n"} {
					b, out, errs := box(t, idleGateway, "sh", "-c",
						"printf x >>"+sandbox.StateDir+"/f && cat "+sandbox.StateDir+"/f && echo")
					if project == "" {
						project = b.Dir
					}
					b.State, b.ReadOnly = sandbox.State{Home: home, Project: project, Program: "p"}, i == 1
					if err := prepare(b.Dir); err != nil {
						t.Skip(err)
					}
					code, err := e.Run(t.Context(), b)
					if err != nil || code != 0 || out.String() != want {
						t.Errorf("Run = %d, %v, %s\n%s\nwant %s", code, err, errs, out, want)
					}
				}
			})
		}
	})
}

// A sandbox whose user is root may replace the directory of its state. The next one neither starts nor has its engine
// follow what is there, and the error names the command that removes it.
func TestAReplacedStateIsRefused(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e *sandbox.Engine) {
		home := t.TempDir()
		defer func() { _, _ = e.RemoveStates(t.Context(), sandbox.State{Home: home}) }()
		for name, replace := range map[string]string{
			"a link to a directory": "ln -s ../../.." + sandbox.Workspace + " state",
			"a link to nothing":     "ln -s /nowhere state",
			"a link to itself":      "ln -s state state",
			"a file":                "echo >state",
			"a pipe":                "mkfifo state",
			"a setuid file":         "cp /bin/sh state && chmod 4755 state",
		} {
			t.Run(name, func(t *testing.T) {
				first, _, errs := box(t, idleGateway, "sh", "-c",
					"cd "+filepath.Dir(sandbox.StateDir)+" && mv state was && "+replace)
				first.State = sandbox.State{Home: home, Project: first.Dir, Program: "p"}
				if err := os.Chmod(first.Dir, 0o755); err != nil {
					t.Fatal(err)
				}
				if code, err := e.Run(t.Context(), first); err != nil || code != 0 {
					t.Fatalf("Run = %d, %v, %s", code, err, errs)
				}
				next, out, _ := box(t, idleGateway, "echo", "ran")
				next.Dir, next.State = first.Dir, first.State
				_, err := e.Run(t.Context(), next)
				if err == nil || !strings.HasPrefix(err.Error(), "make the state of p the user's: ") ||
					strings.Contains(err.Error(), "copier.request") ||
					!strings.Contains(hint.Of(err), "aileron sandbox prune --state --dir "+first.Dir) {
					t.Errorf("Run = %v, hint %q; want that the state was replaced", err, hint.Of(err))
				}
				if out.Len() > 0 {
					t.Errorf("the command ran: %s", out)
				}
				if info, err := os.Stat(first.Dir); err != nil || info.Mode().Perm() != 0o755 {
					t.Errorf("the project is %v, %v", info, err)
				}
			})
		}
	})
}

// A volume may lead to any place of the host if another made it.
func TestAVolumeOfAnotherIsNoState(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e *sandbox.Engine) {
		name := "aileron-test-foreign"
		if err := e.EnsureVolume(t.Context(), name, map[string]string{"aileron.test": "a"}); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = e.RemoveVolume(t.Context(), name) }()
		err := e.EnsureVolume(t.Context(), name, map[string]string{"aileron.test": "b"})
		if !errors.Is(err, engine.ErrForeign) {
			t.Errorf("EnsureVolume = %v, want ErrForeign", err)
		}
	})
}
