package oauth

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ALRubinger/aileron/e2e/authserver"
	"github.com/ALRubinger/aileron/e2e/must"
)

// A session has tokens in its memory. When it crashes, no core file has them, and the stacks that it prints do not.
func TestASessionThatCrashesLeavesNoCore(t *testing.T) {
	t.Parallel()
	p := newPerson(t, authserver.Options{}, "", "mail")
	p.logIn("ann", "binding", "setup", fqn("mail"))
	const dumps = `ulimit -c unlimited; exec "$@"`
	cores := func(dir string) []string { return must.Get(filepath.Glob(filepath.Join(dir, "*core*")))(t) }

	dir, canary := t.TempDir(), "control-"+strings.Repeat("0123456789", 3)
	control := exec.Command("sh", "-c", dumps, "-", "sh", "-c", "kill -ABRT $$")
	control.Dir, control.Env = dir, append(os.Environ(), "CANARY="+canary)
	_ = control.Run()
	switch found := cores(dir); {
	case len(found) == 0:
		t.Logf("here no process leaves a core file in its directory: %v", control.ProcessState)
	case !bytes.Contains(must.Get(os.ReadFile(found[0]))(t), []byte(canary)):
		t.Errorf("%s has nothing of the memory of its process: what is not found in one means nothing", found[0])
	}

	for _, sig := range []syscall.Signal{syscall.SIGABRT, syscall.SIGSEGV, syscall.SIGQUIT} {
		args := p.command(append([]string{"proxy", "--json"}, p.Reach("mail")...)...).Args
		cmd := exec.Command("sh", append([]string{"-c", dumps, "-"}, args...)...)
		dir := t.TempDir()
		cmd.Dir, cmd.Env = dir, append(p.command().Env, "GOTRACEBACK=crash")
		s := p.serveAs(cmd)
		s.mustGet("mail", "/api/me?echo=1")
		must.Do(t, cmd.Process.Signal(sig))
		<-s.ended
		s.kill()
		status, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
		if !status.Signaled() || status.CoreDump() || len(cores(dir)) > 0 {
			t.Errorf("%v: %v, and %q is left", sig, cmd.ProcessState, cores(dir))
		}
		if !strings.Contains(s.said.String(), "goroutine ") { // searched when the test ends
			t.Errorf("%v: the session prints no stacks: %s", sig, s.said.String())
		}
	}
}
