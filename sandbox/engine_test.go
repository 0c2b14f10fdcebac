package sandbox_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/ALRubinger/aileron/sandbox"
)

func TestAServiceTakesAwayWhatAKilledOneLeftAndLeavesNothing(t *testing.T) {
	if _, err := exec.LookPath("podman"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("there is no podman, and in CI this test must run; scripts/prepare installs it")
		}
		t.Skip("there is no podman: scripts/prepare installs it")
	}
	dir, err := os.MkdirTemp("", "e2e-") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	t.Setenv("TMPDIR", dir)
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	killed := filepath.Join(dir, fmt.Sprintf("aileron-engine-%d-1", ended.Process.Pid))
	living := filepath.Join(dir, fmt.Sprintf("aileron-engine-%d-1", os.Getpid()))
	for _, d := range []string{killed, living} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(d, "containers.conf"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	e, err := sandbox.Find(t.Context(), "podman")
	if err != nil {
		t.Fatal(err)
	}
	if services, _ := filepath.Glob(filepath.Join(dir, "*", "podman.sock")); len(services) == 0 {
		e.Close()
		t.Skip("an engine that runs here already needs no service of ours")
	}
	e.Close()
	if left, _ := filepath.Glob(filepath.Join(dir, "aileron-*")); len(left) != 1 || left[0] != living {
		t.Errorf("left: %v, want only that of a living process", left)
	}
}
