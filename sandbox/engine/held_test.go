package engine

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

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

// An init that has no handler yet would lose the signal.
func TestASignalWaitsForItsHandler(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `echo none; read x; trap 'exit 3' TERM; echo trapped; read x`)
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
	for _, step := range []struct {
		line string
		want bool
	}{{"none\n", false}, {"trapped\n", true}} {
		if line, err := lines.ReadString('\n'); line != step.line || err != nil {
			t.Fatalf("sh printed %q, %v, want %q", line, err, step.line)
		}
		if got := handles(cmd.Process.Pid, syscall.SIGTERM); got != step.want {
			t.Errorf("%q: handles = %v, want %v", step.line, got, step.want)
		}
		if handles(cmd.Process.Pid, syscall.SIGHUP) {
			t.Error("it handles SIGHUP")
		}
		if _, err := io.WriteString(in, "go on\n"); err != nil {
			t.Fatal(err)
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
}
