package faults

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/sandbox"
)

// newOrdinary is a person without rights and without an engine.
func newOrdinary(t *testing.T) *user {
	t.Helper()
	if os.Geteuid() != 0 || !harness.Has(t, "setpriv") {
		harness.Need(t, "root and setpriv: another user is made for the test")
	}
	u := newHome(t, sandbox.Native)
	dir, id := filepath.Dir(u.home), strconv.Itoa(harness.RootlessUser)
	roots := filepath.Join(dir, "roots.pem")
	harness.Copy(t, u.origin.Roots, roots)
	u.origin.Roots = roots
	if out, err := exec.Command("chown", "-R", id+":"+id, dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	u.before = []string{"setpriv", "--reuid=" + id, "--regid=" + id, "--clear-groups", "--inh-caps=-all", "env",
		"HOME=" + dir, "DOCKER_HOST=", "XDG_RUNTIME_DIR="}
	return u
}

// Whichever process of its own is killed, a native sandbox ends, says so, and leaves nothing.
func TestAKilledProcessEndsTheNativeSandbox(t *testing.T) {
	t.Parallel()
	for name, which := range map[string]func(r *running) process{
		"the keeper": func(r *running) process { return r.gateway },
		"the init":   func(r *running) process { return r.box },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newUser(t, sandbox.Native)
			r := u.start("curl -s https://api.echo.example/stall & setsid sleep 600 & wait")
			harness.WaitFor(t, "an exchange", func() bool { return len(u.origin.Seen()) == 1 })
			kill(t, which(r), syscall.SIGKILL)
			r.fails("its first process was killed", "the sandbox was ended")
			r.closed(1, "its first process was killed")
			r.nothing()
			must.Do(t, os.Remove(filepath.Join(u.project, "up")))
			if res := u.run(u.boxArgs("exit 7")...); res.code != 7 {
				t.Errorf("the next one: exit %d, %s", res.code, res.err)
			}
		})
	}
}
