package faults

import (
	"strings"
	"syscall"
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
)

// service waits until aileron has started a service of Podman's.
func (r *running) service() (service process) {
	r.u.t.Helper()
	harness.WaitFor(r.u.t, "the service starts", func() bool {
		for _, pid := range pids() {
			if line := args(pid); parent(pid) == r.cmd.Process.Pid && len(line) > 2 && line[2] == "service" {
				service = process{pid, startOf(pid)}
			}
		}
		return service.lives()
	})
	return service
}

// A service that is stopped or killed while a start needs it is named, and
// nothing of the start is left.
func TestAPodmanServiceThatIsLostInAStartIsNamed(t *testing.T) {
	ownService(t)
	for sig, want := range map[syscall.Signal]string{
		syscall.SIGSTOP: "is stopped (SIGSTOP)",
		syscall.SIGKILL: "(signal: killed)",
	} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			u := newUser(t, "podman")
			r := u.begin(u.boxArgs("true")...)
			service := r.service()
			kill(t, service, sig)
			if res := r.end(); res.code != 1 || !strings.Contains(res.err, want) {
				t.Errorf("exit %d with %q, want %q", res.code, res.err, want)
			}
			if left := u.left(); left != "" {
				t.Errorf("left:\n%s", left)
			}
			if service.lives() {
				t.Error("the service lives on")
			}
		})
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
	if r.code != 1 || !strings.Contains(r.err, "docker does not respond: waited") || !isFailure(r.err) {
		t.Errorf("exit %d: %q, want an error with the wait", r.code, r.err)
	}
	u.must(u.boxArgs("true")...)
}
