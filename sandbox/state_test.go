package sandbox_test

import (
	"errors"
	"os"
	"testing"

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
