package sandbox_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/sandbox"
	"github.com/ALRubinger/aileron/sandbox/engine"
)

func TestAServiceRemovesWhatAKilledOneLeftAndLeavesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: needs an engine")
	}
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
	link, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		t.Fatal(err)
	}
	namespace := strings.Trim(link, "pid:[]")
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		t.Fatal(err)
	}
	start := strings.Fields(string(stat))[21]
	named := func(pid int, start, namespace string) string {
		return filepath.Join(dir, fmt.Sprintf("aileron-engine-%d-%s-%s-1", pid, start, namespace))
	}
	killed := named(ended.Process.Pid, "1", namespace)
	reused := named(os.Getpid(), "1", namespace)                                              // its number is ours now
	living, apart := named(os.Getpid(), start, namespace), named(ended.Process.Pid, "1", "1") // of another namespace
	for _, d := range []string{killed, reused, living, apart} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(d, "containers.conf"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	e, err := sandbox.Find(t.Context(), "podman", engine.Patience{})
	if err != nil {
		t.Fatal(err)
	}
	if services, _ := filepath.Glob(filepath.Join(dir, "*", "s")); len(services) == 0 {
		e.Close()
		t.Skip("an engine that runs here already needs no service of ours")
	}
	e.Close()
	left, _ := filepath.Glob(filepath.Join(dir, "aileron-*"))
	if len(left) != 2 || !slices.Contains(left, living) || !slices.Contains(left, apart) {
		t.Errorf("left: %v, want all but those of processes that have ended", left)
	}
}

func TestADeadEngineIsNamedWithAHint(t *testing.T) {
	for _, c := range []struct{ kind, variable, value, want string }{
		{"docker", "DOCKER_HOST", "unix:///nowhere.sock", "unset DOCKER_HOST"},
		{"docker", "DOCKER_HOST", "ssh://somewhere", "speaks no other"},
		{"podman", "CONTAINER_HOST", "unix:///nowhere.sock", "unset it"},
		{"podman", "CONTAINER_HOST", "ssh://somewhere/run", "speaks no other"},
	} {
		t.Run(c.value, func(t *testing.T) {
			t.Setenv(c.variable, c.value)
			e, err := sandbox.Find(t.Context(), c.kind, engine.Patience{})
			if err == nil {
				e.Close()
			}
			if err == nil || !strings.Contains(err.Error(), c.value) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Find = %v; want %s and %q", err, c.value, c.want)
			}
		})
	}
}
