package sandbox_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/sandbox"
	"github.com/ALRubinger/aileron/sandbox/engine"
)

// A sweep may list a gateway whose box is made a moment later, and which Podman
// does not remove without it. That is for the next sweep, and not an error.
func TestASweepThatMeetsASandboxInTheMakingReportsNothing(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e *sandbox.Engine) {
		ended := exec.Command("true")
		must.Do(t, ended.Run())
		namespace := must.Get(os.Readlink("/proc/self/ns/pid"))(t)
		session := "making" + strings.ToLower(filepath.Base(filepath.Dir(t.TempDir())))
		gateway, box := "aileron-"+session+"-gw", "foreign-"+session // without our labels: in no list yet
		call := func(args ...string) error {
			if out, err := exec.Command(e.Kind(), args...).CombinedOutput(); err != nil {
				return fmt.Errorf("%s %v: %w: %s", e.Kind(), args, err, out)
			}
			return nil
		}
		t.Cleanup(func() {
			_ = call("rm", "-f", box)
			_ = call("rm", "-f", gateway)
		})
		// Another test's session may sweep the gateway before it has a box.
		harness.WaitFor(t, "both are made", func() bool {
			must.Do(t, call("create", "--name", gateway, "--network", "none",
				"--label", "aileron.session="+session, "--label", "aileron.role=gateway",
				"--label", fmt.Sprintf("aileron.owner=%d/1/%s", ended.Process.Pid, namespace), testImage.Ref, "true"))
			err := call("create", "--name", box, "--network", "container:"+gateway, testImage.Ref, "true")
			if err != nil && call("inspect", "--type", "container", gateway) == nil {
				t.Fatal(err)
			}
			return err == nil
		})
		sweep(t, e)
		if err := call("inspect", box); err != nil {
			t.Error(err)
		}
		must.Do(t, call("rm", box))
		sweep(t, e)
		// A sweep of another process may be removing it just now.
		harness.WaitFor(t, "the gateway is removed when nothing needs it any more", func() bool {
			return call("inspect", "--type", "container", gateway) != nil
		})
	})
}

// sweep sweeps as a process of another home does, and fails unless it succeeds. What other packages' tests have on the
// engine may end in this moment, which is an error of one sweep, and not of the next.
func sweep(t *testing.T, e *sandbox.Engine) {
	t.Helper()
	var err error
	if !harness.Poll(harness.Patience, time.Second, func() bool {
		_, err = e.Sweep(t.Context(), func(string) bool { return false })
		return err == nil
	}) {
		t.Errorf("Sweep = %v, want nothing said", err)
	}
}

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
	dir := must.ShortDir(t)
	t.Setenv("TMPDIR", dir)
	ended := exec.Command("true")
	must.Do(t, ended.Run())
	link := must.Get(os.Readlink("/proc/self/ns/pid"))(t)
	namespace := strings.Trim(link, "pid:[]")
	stat := must.Get(os.ReadFile("/proc/self/stat"))(t)
	start := strings.Fields(string(stat))[21]
	named := func(pid int, start, namespace string) string {
		return filepath.Join(dir, fmt.Sprintf("aileron-engine-%d-%s-%s-1", pid, start, namespace))
	}
	killed := named(ended.Process.Pid, "1", namespace)
	reused := named(os.Getpid(), "1", namespace)                                              // its number is ours now
	living, apart := named(os.Getpid(), start, namespace), named(ended.Process.Pid, "1", "1") // of another namespace
	for _, d := range []string{killed, reused, living, apart} {
		must.Do(t, os.Mkdir(d, 0o700))
		must.Do(t, os.WriteFile(filepath.Join(d, "containers.conf"), nil, 0o600))
	}
	e := must.Get(sandbox.Find(t.Context(), "podman", engine.Patience{}))(t)
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
