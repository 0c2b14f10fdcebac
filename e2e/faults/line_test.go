package faults

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
)

// A box without its line can do nothing, and no program in it could report why.
func TestARemovedLineEndsTheBox(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"box/proxy.sock", "box/redirect.sock", ""} {
		t.Run(strings.ReplaceAll("ID/"+what, "/", " "), func(t *testing.T) {
			t.Parallel()
			places(t, func(t *testing.T, u *user) {
				r := u.start("sleep 600")
				must.Do(t, os.RemoveAll(filepath.Join(u.home, "sessions", r.session, what)))
				r.fails("sock was removed", "only uplink", "the sandbox was ended")
				r.closed(1, "sock was removed")
				r.nothing()
			})
		})
	}
}

// Whichever of the two is paused, the line waits and goes on, and who asks for
// the end is heard.
func TestAPausedContainerHearsAnEndAndElseGoesOn(t *testing.T) {
	t.Parallel()
	for _, role := range []string{"box", "gw"} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			engines(t, func(t *testing.T, u *user) {
				script := catches42 + until("go") + get
				r := u.start(script)
				u.pause(r.name(role))
				u.say("go")
				u.mustAsk("unpause", r.name(role))
				if res := r.end(); res.code != 0 || len(u.origin.Seen()) != 1 {
					t.Errorf("unpaused: exit %d with %d requests: %s", res.code, len(u.origin.Seen()), res.err)
				}
				r.nothing()
				must.Do(t, os.Remove(filepath.Join(u.project, "go")))
				for _, how := range []string{"SIGTERM", "session stop"} {
					_ = os.Remove(filepath.Join(u.project, "up"))
					r := u.start(script)
					u.pause(r.name(role))
					if how == "SIGTERM" {
						r.signal(syscall.SIGTERM)
					} else {
						u.must("session", "stop", r.session)
					}
					if res := r.end(); res.code != 42 {
						t.Errorf("%s: exit %d: %s", how, res.code, res.err)
					}
					r.nothing()
				}
			})
		})
	}
}

func TestAContainerThatAnotherProgramRemovesIsNamed(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, u *user) {
		r := u.start("sleep 600")
		u.mustAsk("rm", "-f", r.name("box"))
		r.fails("its container was removed by another process")
		r.closed(1, "removed by another process")
		r.nothing()

		_ = os.Remove(filepath.Join(u.project, "up"))
		r = u.start("sleep 600")
		if u.engine == "podman" { // which removes a gateway only with its box
			u.removeBoth(r)
		} else {
			u.mustAsk("rm", "-f", r.name("gw"))
		}
		r.fails("its container was removed by another process")
		r.closed(1, "removed by another process")
		r.nothing()
	})
}

// removeBoth removes a gateway with its box, as Podman does it: the box first. When aileron sees that, it ends the
// gateway and removes it too, so that Podman may find it ended when it is about to kill it, or gone.
func (u *user) removeBoth(r *running) {
	u.t.Helper()
	var out string
	removed := harness.Poll(patience, 100*time.Millisecond, func() bool {
		cmd := exec.Command(u.engine, "rm", "-f", "--depend", r.name("gw"))
		cmd.Env = engineEnv()
		said, err := cmd.CombinedOutput()
		out = string(said)
		if err == nil || strings.Contains(out, "no such container") || strings.Contains(out, "no container with name") {
			return true
		}
		if !strings.Contains(out, "container state improper") && !strings.Contains(out, "already in progress") {
			u.t.Fatalf("podman rm: %v\n%s", err, out)
		}
		u.t.Logf("podman rm lost the race: %v\n%s", err, out)
		return false
	})
	if !removed {
		u.t.Fatalf("podman does not remove it: %s", out)
	}
}
