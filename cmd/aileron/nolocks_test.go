package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/internal/filelock"
	"golang.org/x/sys/unix"
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
			a := &app{stdin: strings.NewReader(""), stdout: &out, stderr: &errs,
				getenv:       func(k string) string { return o.env[k] },
				vaultOptions: cheapVaults(), locks: filelock.Locker{Flock: func(int, int) error { return errno }}}
			code := Main(t.Context(), append([]string{"--home", o.home, "--json"}, args...), a)
			if code != 1 || !strings.Contains(errs.String(), errno.Error()) || !strings.Contains(errs.String(), "--home") {
				t.Errorf("%q with %v ends with %d: %s", args, errno, code, &errs)
			}
		}
	}
	left, _ := os.ReadDir(filepath.Join(o.home, "sessions"))
	if now := o.inForce(); now != before || len(o.pendingFiles()) > 0 || len(left) > 0 {
		t.Errorf("left %q and %v; the home is\n%s\nwas\n%s", o.pendingFiles(), left, now, before)
	}
}
