package seal

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/sandbox"
)

// nativeUser is a person without rights and without an engine.
func nativeUser(t *testing.T) *person {
	t.Helper()
	if !harness.Has(t, "setpriv") {
		t.Skip("there is no setpriv: scripts/prepare --tests installs it")
	}
	dir, id := must.OpenDir(t), strconv.Itoa(harness.RootlessUser)
	return newPerson(t, sandbox.Native, harness.RootlessUser, dir, "setpriv", "--reuid="+id, "--regid="+id,
		"--clear-groups", "--inh-caps=-all", "env", "HOME="+dir, "DOCKER_HOST=", "XDG_RUNTIME_DIR=")
}

// public returns the directories that a native sandbox has of this host's system: all of /usr but those in which the
// session puts files.
func (p *person) public() (dirs []string) {
	if p.engine != sandbox.Native {
		return nil
	}
	for _, parent := range []string{"/usr", "/usr/local"} {
		entries, err := os.ReadDir(parent)
		if err != nil {
			p.t.Fatal(err)
		}
		for _, e := range entries {
			if at := filepath.Join(parent, e.Name()); at != "/usr/local" && at != "/usr/local/bin" && at != "/usr/local/share" {
				dirs = append(dirs, at)
			}
		}
	}
	return dirs
}

// nativeLeftovers are the processes of native sandboxes of the program under test.
func (p *person) nativeLeftovers() string {
	var left []string
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		line, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		if err != nil || !strings.HasPrefix(string(line), "aileron-native-") {
			continue
		}
		if exe, err := os.Readlink(filepath.Join(dir, "exe")); err == nil && exe == program("aileron") {
			left = append(left, filepath.Base(dir)+" "+strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return strings.Join(left, ", ")
}

// An agent of the user's PATH is launched: its state goes on in its next sandbox, and a port is published.
func TestAnAgentIsLaunchedNatively(t *testing.T) {
	p := nativeUser(t)
	for _, path := range []string{p.project, filepath.Dir(p.project)} {
		must.Do(t, os.Chown(path, harness.RootlessUser, harness.RootlessUser))
	}
	dir := filepath.Join(filepath.Dir(p.project), "programs")
	must.Do(t, os.Mkdir(dir, 0o755))
	must.Do(t, os.WriteFile(filepath.Join(dir, "codex"), []byte(agent), 0o755))
	p.as = append(p.as, "PATH="+dir+":/usr/bin:/bin")
	prune := []string{"sandbox", "prune", "--state", "--yes", "--dir", p.project, "--sandbox=native"}
	for _, want := range []string{"x", "xx", "x"} {
		port := harness.FreePort(t)
		ended := make(chan result, 1)
		go func() {
			ended <- p.run("launch", "--sandbox=native", "--dir", p.project, "--port", fmt.Sprintf("%d:8000", port), "codex")
		}()
		got := ""
		harness.Poll(harness.Patience, 50*time.Millisecond, func() bool {
			got = read(port)
			return got != "" || len(ended) > 0
		})
		r := <-ended
		if r.code != 0 || r.out != want || got != "from the sandbox" {
			t.Errorf("exit %d, it has %q, want %q; its port has %q\n%s", r.code, r.out, want, got, r.err)
		}
		for _, text := range []string{"aileron: native: sealed without an engine, and weaker than a container",
			"native: " + dir + " is in the sandbox, read-only, for codex"} {
			if !strings.Contains(r.err, text) {
				t.Errorf("%q is not printed:\n%s", text, r.err)
			}
		}
		if want == "xx" {
			if r := p.run(prune...); r.code != 0 || r.err != "aileron: removed 1 state\n" {
				t.Errorf("prune: exit %d: %s", r.code, r.err)
			}
		}
	}
	if left := p.nativeLeftovers(); left != "" {
		t.Errorf("processes are left: %s", left)
	}
}

// Where a sandbox cannot be sealed, nothing of the command runs, and no other sandbox is taken instead.
func TestANativeSandboxIsSealedOrRefused(t *testing.T) {
	p := newPerson(t, sandbox.Native, 0, must.OpenDir(t))
	p.as = []string{"unshare", "--user", "--map-root-user", "--mount", "sh", "-c",
		`echo 0 >/proc/sys/user/max_user_namespaces && exec "$@"`, "-"}
	r := p.run("sandbox", "run", "--sandbox=native", "--dir", p.project, "--", "sh", "-c", "echo it ran; touch ran")
	if _, err := os.Stat(filepath.Join(p.project, "ran")); err == nil || r.code != 1 || r.out != "" {
		t.Errorf("exit %d, %q, and the command ran: %v", r.code, r.out, err == nil)
	}
	for _, want := range []string{"user namespaces are switched off (user.max_user_namespaces is 0)",
		"hint: sudo sysctl user.max_user_namespaces=15000"} {
		if !strings.Contains(r.err, want) {
			t.Errorf("%q is not printed:\n%s", want, r.err)
		}
	}
	ended := ""
	for _, row := range p.rows() {
		ended += row.Event + " " + row.Reason + "\n"
	}
	if !strings.Contains(ended, "session.ended") {
		t.Errorf("the audit log has no end of the session:\n%s", ended)
	}
}
