package engine

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/e2e/harness"
)

// A zombie has left its groups, and is not a process without limits.
func TestAProcessThatEndsIsExiting(t *testing.T) {
	if exiting(os.Getpid()) {
		t.Error("the test itself is said to exit")
	}
	cmd := exec.CommandContext(t.Context(), "cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
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
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if !exiting(cmd.Process.Pid) {
		t.Error("a process that is gone is said to run")
	}
}

// An init that has not blocked a signal yet would lose it, and so would the runtime
// that catches it until it executes the init.
func TestASignalWaitsForItsInit(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "python3", "-c", `
import signal, sys
def step(name):
    print(name, flush=True)
    sys.stdin.readline()
step("default")
signal.signal(signal.SIGTERM, lambda *_: None)
step("caught")
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
step("blocked")
`)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	fd, err := unix.PidfdOpen(cmd.Process.Pid, 0)
	if err != nil {
		t.Fatal(err)
	}
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
		if _, err := io.WriteString(in, "go on\n"); err != nil {
			t.Fatal(err)
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
}
