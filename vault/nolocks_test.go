package vault

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/e2e/must"
)

// fakeFlock is flock(2) of a file system without locks.
func fakeFlock(errno unix.Errno) func(int, int) error { return func(int, int) error { return errno } }

func TestAVaultWithoutFileLocksIsNotWritten(t *testing.T) {
	v := Open(filepath.Join(t.TempDir(), "vault"), TestOnlyWorkFactor(10))
	must.Do(t, v.Init([]byte("a long passphrase")))
	for _, errno := range []unix.Errno{unix.ENOLCK, unix.EOPNOTSUPP} {
		v.flock = fakeFlock(errno)
		for what, err := range map[string]error{
			"lock":   v.SetLocked(true),
			"passwd": v.ChangePassphrase([]byte("another passphrase")),
			"revoke": v.Revoke("bearer/x/y"),
		} {
			if !errors.Is(err, errno) {
				t.Errorf("%s: %v, want %v", what, err, errno)
			}
		}
	}
	if locked, err := v.LockState(); locked || err != nil {
		t.Errorf("locked %v, %v", locked, err)
	}
}

// On a busy machine, writers that take their turns may together take longer than one that hangs is waited for.
func init() { writersWait = 5 * time.Minute }
