package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/filelock"
	"github.com/ALRubinger/aileron/internal/home"
)

// A file system without locks, such as NFS without its lock daemon: nothing is
// done, nothing is left, and the message says where a home can be.
func TestAHomeWithoutFileLocksIsRefused(t *testing.T) {
	o := withConnectors(t)
	o.ok("binding", "setup", githubFQN, "--identity", "work", "--secret-file", o.file("secret", testToken))
	before := o.inForce()
	for _, errno := range []unix.Errno{unix.ENOLCK, unix.EOPNOTSUPP} {
		for _, args := range [][]string{
			{"vault", "lock"}, {"binding", "revoke", githubBinding + "work", "--yes"}, {"connector", "remove",
				githubFQN}, {"run", "--", "true"},
		} {
			var out, errs bytes.Buffer
			a := cli.New(&console.Console{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs},
				&home.Dir{Environ: func(k string) string { return o.env[k] }, VaultOptions: cheapVaults(),
					Locks: filelock.Locker{Flock: func(int, int) error { return errno }}})
			code := Main(t.Context(), append([]string{"--home", o.Flag, "--json"}, args...), a)
			if code != 1 || !strings.Contains(errs.String(), errno.Error()) || !strings.Contains(errs.String(), "--home") {
				t.Errorf("%q with %v ends with %d: %s", args, errno, code, &errs)
			}
		}
	}
	left, _ := os.ReadDir(filepath.Join(o.Flag, "sessions"))
	if now := o.inForce(); now != before || len(o.pendingFiles()) > 0 || len(left) > 0 {
		t.Errorf("left %q and %v; the home is\n%s\nwas\n%s", o.pendingFiles(), left, now, before)
	}
}
