package engine

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
)

// A zombie has left its groups, and is not a process without limits.
func TestAProcessThatEndsIsExiting(t *testing.T) {
	if exiting(os.Getpid()) {
		t.Error("the test itself is said to exit")
	}
	cmd := exec.CommandContext(t.Context(), "cat")
	in := must.Get(cmd.StdinPipe())(t)
	must.Do(t, cmd.Start())
	if exiting(cmd.Process.Pid) {
		t.Error("a process that waits for its input is said to exit")
	}
	_ = in.Close()
	// It is a zombie until Wait.
	if !harness.Poll(harness.Patience, time.Millisecond, func() bool { return exiting(cmd.Process.Pid) }) {
		t.Error("a zombie is said to run")
	}
	// As a hybrid host shows it: the group of version 2 is still the container's.
	c := &Container{ID: "c0ffee", process: &pidfd{-1}, pid: cmd.Process.Pid,
		groups: groupsOf("4:memory:/\n1:cpu:/\n0::/c0ffee\n", "c0ffee")}
	if missing := c.Unenforced(Limits{Memory: 1 << 30, CPUs: 1}); missing != nil {
		t.Errorf("%q are said not to be enforced for a process that exits", missing)
	}
	c.pid = os.Getpid()
	if missing := c.Unenforced(Limits{Memory: 1 << 30, CPUs: 1}); len(missing) != 2 {
		t.Errorf("%q are said not to be enforced for a process that runs, want both", missing)
	}
	must.Do(t, cmd.Wait())
	if !exiting(cmd.Process.Pid) {
		t.Error("a process that is gone is said to run")
	}
}

// An init that has not blocked a signal yet would lose it, and so would the runtime
// that catches it until it executes the init.
func TestASignalWaitsForItsInit(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "python3", "-c", `
import signal, sys
signal.signal(signal.SIGHUP, signal.SIG_DFL)
def step(name):
    print(name, flush=True)
    sys.stdin.readline()
step("default")
signal.signal(signal.SIGTERM, lambda *_: None)
step("caught")
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
step("blocked")
`)
	in := must.Get(cmd.StdinPipe())(t)
	out := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	lines := bufio.NewReader(out)
	fd := must.Get(unix.PidfdOpen(cmd.Process.Pid, 0))(t)
	c := &Container{process: &pidfd{fd}, pid: cmd.Process.Pid}
	defer c.process.release()
	for _, step := range []struct {
		line        string
		soon, later bool
	}{{"default\n", false, false}, {"caught\n", false, true}, {"blocked\n", true, true}} {
		if line, err := lines.ReadString('\n'); line != step.line || err != nil {
			t.Fatalf("it printed %q, %v, want %q", line, err, step.line)
		}
		for since, want := range map[time.Duration]bool{0: step.soon, execTime: step.later} {
			if got := c.TakesSignal(syscall.SIGTERM, since); got != want {
				t.Errorf("%q, %v after the start: TakesSignal = %v, want %v", step.line, since, got, want)
			}
		}
		if c.TakesSignal(syscall.SIGHUP, execTime) {
			t.Error("it takes SIGHUP")
		}
		must.Get(io.WriteString(in, "go on\n"))(t)
	}
	must.Do(t, cmd.Wait())
}

func TestLimitsThatTheKernelDoesNotEnforceAreFound(t *testing.T) {
	limits := Limits{Memory: 1 << 20, CPUs: 0.5}
	dir := func(files map[string]string) string {
		at := t.TempDir()
		for name, text := range files {
			must.Do(t, os.WriteFile(filepath.Join(at, name), []byte(text), 0o600))
		}
		return at
	}
	both := func(unified bool, files map[string]string) groups {
		g := group{dir(files), unified}
		return groups{"memory": g, "cpu": g, "pids": g}
	}
	for _, c := range []struct {
		name string
		g    groups
		want []string
	}{
		{"version 1", both(false, map[string]string{
			"memory.limit_in_bytes": "1048576\n", "cpu.cfs_quota_us": "50000\n"}), nil},
		{"version 1, without limits", both(false, map[string]string{
			"memory.limit_in_bytes": "9223372036854771712\n", "cpu.cfs_quota_us": "-1\n"}), []string{"memory", "cpus"}},
		{"version 2", both(true, map[string]string{"memory.max": "1048576\n", "cpu.max": "50000 100000\n"}), nil},
		{"version 2, without limits", both(true, map[string]string{
			"memory.max": "max\n", "cpu.max": "max 100000\n"}), []string{"memory", "cpus"}},
		{"version 2, without the controllers", both(true, nil), []string{"memory", "cpus"}},
		{"the groups are of others", groupsOf("4:memory:/user\n1:cpu:/user\n", "c0ffee"), []string{"memory", "cpus"}},
		{"not known", nil, nil},
	} {
		if got := c.g.unenforced(limits); !slices.Equal(got, c.want) {
			t.Errorf("%s: unenforced = %q, want %q", c.name, got, c.want)
		}
		if got := c.g.unenforced(Limits{}); len(got) > 0 {
			t.Errorf("%s: without limits %q are not enforced", c.name, got)
		}
	}
}

func TestWhatAContainerRunsOutOfIsRead(t *testing.T) {
	for _, c := range []struct {
		name    string
		unified bool
		files   map[string]string
		want    Exhaustion
	}{
		{"nothing", false, map[string]string{
			"memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n", "pids.events": "max 0\n"}, Exhaustion{}},
		{"memory, version 1", false, map[string]string{
			"memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"}, Exhaustion{Memory: true}},
		{"memory, version 2", true, map[string]string{
			"memory.events": "low 0\nhigh 0\nmax 12\noom 1\noom_kill 1\noom_group_kill 0\n"}, Exhaustion{Memory: true}},
		{"a limit that was met without a kill", true, map[string]string{
			"memory.events": "max 12\noom 0\noom_kill 0\n"}, Exhaustion{}},
		{"processes", true, map[string]string{"pids.events": "max 7\n"}, Exhaustion{Processes: true}},
	} {
		dir := t.TempDir()
		for name, text := range c.files {
			must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		}
		g := group{dir, c.unified}
		var got Exhaustion
		groups{"memory": g, "pids": g}.look(&got)
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestTheGroupOfAContainerIsTheOneWithItsLimits(t *testing.T) {
	root := t.TempDir()
	must.Do(t, os.MkdirAll(filepath.Join(root, "machine.slice/libpod-c0ffee.scope/container"), 0o700))
	want := filepath.Join(root, "machine.slice/libpod-c0ffee.scope")
	for _, path := range []string{"/machine.slice/libpod-c0ffee.scope", "/machine.slice/libpod-c0ffee.scope/container"} {
		if got := groupAt(root, path, "c0ffee", true); got.dir != want {
			t.Errorf("groupAt(%s) = %q, want %q", path, got.dir, want)
		}
	}
	if got := groupAt(root, "/machine.slice", "c0ffee", true); got.dir != "" {
		t.Errorf("a group of others is taken for the container's: %q", got.dir)
	}
}
