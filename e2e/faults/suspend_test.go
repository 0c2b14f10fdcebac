package faults

import (
	"strings"
	"syscall"
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
)

// A service that is stopped while a start waits for it is named, with the way
// on, and nothing of the start is left.
func TestAStoppedPodmanServiceIsNamedInAStart(t *testing.T) {
	ownService(t)
	t.Parallel()
	u := newUser(t, "podman")
	r := u.begin(u.boxArgs("true")...)
	service := process{}
	harness.WaitFor(t, "the service starts", func() bool {
		for _, pid := range pids() {
			if line := args(pid); parent(pid) == r.cmd.Process.Pid && len(line) > 2 && line[2] == "service" {
				service = process{pid, startOf(pid)}
			}
		}
		return service.lives()
	})
	kill(t, service, syscall.SIGSTOP)
	r.fails("is stopped (SIGSTOP); kill -CONT ", "for it to ")
	if left := u.left(); left != "" {
		t.Errorf("left:\n%s", left)
	}
	if service.lives() {
		t.Error("the stopped service lives on")
	}
}

// A stopped daemon is named too, and continued it goes on. Not parallel: all
// others need the daemon.
func TestAStoppedDockerDaemonIsNamedInAStart(t *testing.T) {
	u := newUser(t, "docker")
	daemon := process{docker.cmd.Process.Pid, startOf(docker.cmd.Process.Pid)}
	kill(t, daemon, syscall.SIGSTOP)
	r := u.run(u.boxArgs("true")...)
	kill(t, daemon, syscall.SIGCONT)
	if r.code != 1 || !strings.Contains(r.err, "docker does not answer: waited") || strings.Count(r.err, "\n") != 1 {
		t.Errorf("exit %d: %q, want one line with the wait", r.code, r.err)
	}
	u.must(u.boxArgs("true")...)
}
