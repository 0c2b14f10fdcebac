package engine

import (
	"os"
	"os/exec"
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
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if !exiting(cmd.Process.Pid) {
		t.Error("a process that is gone is said to run")
	}
}
