// Package homes takes away what a home stands on: the command that changes it
// is killed, its disk is full or read-only, it disappears under a session, or
// a newer aileron has written to it. Nothing may be lost, nothing may be in
// force without an event, and each command must report what is wrong.
//
// Everything happens in a mount namespace of the suite's own.
package homes

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
)

// inside is set in the process that has the namespace, to the directory of
// the built program.
const inside = "AILERON_HOMES_INSIDE"

func TestMain(m *testing.M) {
	if os.Getenv(inside) == "" {
		os.Exit(again())
	}
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		fmt.Fprintln(os.Stderr, "homes: make the mounts private:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// again builds the program and runs the suite in a mount namespace: as a user
// with a user namespace that makes it root in there.
func again() int {
	dir, err := os.MkdirTemp("", "homes-")
	if err == nil {
		defer os.RemoveAll(dir)
		err = harness.Build(dir, map[string]string{"aileron": "../../cmd/aileron"})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "homes:", err)
		return 1
	}
	kinds := uintptr(syscall.CLONE_NEWNS)
	if os.Geteuid() != 0 {
		kinds |= syscall.CLONE_NEWUSER
	}
	return harness.RunApart("homes", inside+"="+dir, kinds)
}

const (
	secret     = "ghp-stand/in+SECRET0123456789abcdefXYZ"
	passphrase = "correct horse battery"
	echoFQN    = "github://aileron-tests/aileron-connector-echo"
	echoDir    = "../testdata/connectors/echo"
	echoWork   = "bearer/aileron-connector-echo/work"

	// patience bounds what must happen; nothing is judged by how long it took.
	patience = 4 * time.Minute
)

func program() string { return filepath.Join(os.Getenv(inside), "aileron") }

// bound is a home in which the echo connector is bound: opening a vault is
// slow on purpose.
var bound = sync.OnceValues(func() (string, error) {
	home := filepath.Join(os.Getenv(inside), "home")
	return home, harness.Bind(program(), home, passphrase, harness.Connector{Dir: echoDir, FQN: echoFQN, Secret: secret})
})

// user is one person with a home.
type user struct {
	t    *testing.T
	home string
}

// newUser is a person whose home has the echo connector, bound.
func newUser(t *testing.T) *user {
	t.Helper()
	template := must.Get(bound())(t)
	u := &user{t, filepath.Join(t.TempDir(), "h")}
	harness.Copy(t, template, u.home)
	return u
}

func (u *user) command(stdin string, args ...string) *exec.Cmd {
	cmd := exec.Command(program(), args...)
	cmd.Env = harness.Env(u.home, passphrase)
	cmd.Stdin = strings.NewReader(stdin)
	return cmd
}

type result struct {
	out, err string
	code     int
}

func (u *user) run(args ...string) result {
	u.t.Helper()
	out, errs, code := harness.Finish(u.t, u.command(secret+"\n", args...), patience)
	return result{out, errs, code}
}

func (u *user) must(args ...string) result {
	u.t.Helper()
	r := u.run(args...)
	if r.code != 0 {
		u.t.Fatalf("aileron %q ends with %d: %s", args, r.code, r.err)
	}
	return r
}

// rows is the log as it is on disk: no command of aileron's has settled
// anything before.
func (u *user) rows() []audit.Row {
	u.t.Helper()
	return harness.AuditRows(u.t, u.home, audit.Filter{})
}
