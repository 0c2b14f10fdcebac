package e2e

import (
	"syscall"
	"testing"

	"github.com/ALRubinger/aileron/e2e/standin"
)

// Nobody has to come after a killed aileron: its box goes by itself.
func TestAKilledAileronsBoxEnds(t *testing.T) {
	t.Parallel()
	needPodman(t)
	u := newUser(t, standin.Script{})
	cmd := u.command(append(append([]string{"sandbox", "run", "--sandbox=podman", "--dir", u.project}, u.reach()...), "--", "sleep", "600")...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return len(u.boxes()) == 2 })
	// The whole process group, as a terminal or a supervisor would.
	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	waitFor(t, func() bool { return u.leftovers() == "" })
	contains(t, "the next session's view", u.must("session", "list").out, "unclean")
}
