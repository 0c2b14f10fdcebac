package attacks

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/e2e/harness"
)

// ordinary is a user who may read none of root's files.
const ordinary = 65534

// newOrdinary is a person without privileges, with the named credentials
// bound: what root can read proves nothing.
func newOrdinary(c *testCase, names ...string) *person {
	c.t.Helper()
	as := &syscall.Credential{Uid: ordinary, Gid: ordinary, NoSetGroups: true}
	try := exec.Command("/bin/true")
	try.SysProcAttr = &syscall.SysProcAttr{Credential: as}
	if err := try.Run(); err != nil {
		harness.Need(c.t, "root, to become an ordinary user: "+err.Error())
	}
	p := newReleased(c.t)
	p.bind(names...)
	p.as = as
	c.must(os.Chmod(on.dir, 0o711))
	for _, public := range []string{on.rootsFile, filepath.Join(on.dir, "resolv.conf")} {
		c.must(os.Chmod(public, 0o644))
	}
	c.must(filepath.WalkDir(p.dir, func(path string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, ordinary, ordinary))
	}))
	return p
}

func vltUndumpable(c *testCase) {
	vltReadByAChild(c)
	vltDumps(c)
}

// vltReadByAChild runs a program behind aileron run that tries to read it.
func vltReadByAChild(c *testCase) {
	p := newOrdinary(c, "api")
	peek := filepath.Join(p.dir, "peek")
	build := exec.Command("go", "build", "-o", peek, "./testdata/peek")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		c.t.Fatalf("%v\n%s", err, out)
	}
	p.env = append(p.env, "AILERON_VAULT_NEW_PASSPHRASE="+passphrase+passphrase)
	p.cores = true
	e := p.must("run", "--", peek)
	var got struct {
		Parent, Control map[string]string
		Env             []string
		Core            uint64
	}
	c.must(json.Unmarshal([]byte(e.out), &got))
	for what, refusal := range got.Parent {
		if refusal == "" {
			c.failf("a child of aileron run got at its parent's %s", what)
		} else if !strings.Contains(refusal, "permission denied") && !strings.Contains(refusal, "operation not permitted") {
			c.failf("a child of aileron run got at its parent's %s, but for %q", what, refusal)
		}
	}
	for _, what := range []string{"environ", "mem", "maps", "fd", "process_vm_readv", "pidfd_getfd", "ptrace"} {
		if refusal, tried := got.Control[what]; !tried || refusal != "" {
			c.failf("the control, a process of its own: %s: %q", what, refusal)
		}
	}
	if env := strings.Join(got.Env, "\n"); strings.Contains(env, passphrase) || strings.Contains(env, "PASSPHRASE") {
		c.failf("a child of aileron run has the passphrase in its environment")
	}
	if got.Core != unix.RLIM_INFINITY {
		c.failf("the child's core limit is %d, want aileron's own, which is none", got.Core)
	}
	if !strings.Contains(strings.Join(got.Env, "\n"), "HTTPS_PROXY=") {
		c.failf("the child has no environment of a session: %q", got.Env)
	}
}

// vltDumps breaks a session off with all that makes a program leave traces.
func vltDumps(c *testCase) {
	p := newOrdinary(c, "api")
	p.cores, p.env = true, append(p.env, "GOTRACEBACK=crash")
	control := exec.Command("/bin/sh", "-c", "ulimit -c unlimited; kill -ABRT $$")
	control.Dir, control.SysProcAttr = p.dir, &syscall.SysProcAttr{Credential: p.as}
	_ = control.Run()
	if status, _ := control.ProcessState.Sys().(syscall.WaitStatus); !status.CoreDump() {
		c.t.Log("no process dumps core on this machine: that aileron does not proves nothing here")
	}
	before, _ := filepath.Glob(filepath.Join(p.dir, "core*"))
	s := p.start()
	s.on(c, "traffic", func(c *testCase) {
		c.origin("api.good.test").plays((*visit).echo)
		c.is("an echo", c.get("api.good.test", "/v1/echo"), 200)
	})
	if env, err := os.ReadFile(procFile(s, "environ")); err == nil && bytes.Contains(env, []byte(passphrase)) {
		c.failf("the kernel shows the passphrase in the environment of the session")
	}
	if limits, err := os.ReadFile(procFile(s, "limits")); err != nil ||
		!strings.Contains(strings.Join(strings.Fields(string(limits)), " "), "Max core file size 0 ") {
		c.failf("the session has another core limit than 0: %v\n%s", err, limits)
	}
	c.must(s.cmd.Process.Signal(syscall.SIGQUIT))
	_ = s.wait()
	if status, _ := s.cmd.ProcessState.Sys().(syscall.WaitStatus); status.CoreDump() || !status.Signaled() {
		c.failf("the session ended with %v, want a signal and no core file", s.cmd.ProcessState)
	}
	if after, _ := filepath.Glob(filepath.Join(p.dir, "core*")); len(after) > len(before) {
		c.failf("left: %q", after)
	}
	if !bytes.Contains(s.logs(), []byte("goroutine ")) {
		c.failf("there was no dump to search")
	}
	if of := on.leaks.Find(s.logs()); of != "" || bytes.Contains(s.logs(), []byte(passphrase)) {
		c.failf("the dump holds a secret: %s", of)
	}
	for _, core := range before {
		_ = os.Remove(core) // the control's
	}
	searchFiles(p.t.(*testing.T), &s.subject)
}

func procFile(s *session, name string) string {
	return filepath.Join("/proc", strconv.Itoa(s.cmd.Process.Pid), name)
}
