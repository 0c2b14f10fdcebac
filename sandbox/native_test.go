package sandbox

import (
	"os"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/sandbox/native"
)

// A command of root's sandbox may leave a program with its set-group-ID bit in a user's project. It is of no group that
// the user lacks, whatever the project's is.
func TestANativeSandboxHasNoGroupThatItsUserLacks(t *testing.T) {
	dir := t.TempDir()
	own := native.Owner{UID: os.Geteuid(), GID: os.Getegid()}
	if got := must.Get(nativeOwner(dir))(t); got != own {
		t.Errorf("in a project of one's own: %+v, want %+v", got, own)
	}
	if own.UID != 0 {
		t.Skip("only root runs a sandbox as another user")
	}
	for _, c := range []struct{ gid, want int }{
		{61234, 61234}, // no group of this host
		{0, noGroup},
	} {
		must.Do(t, os.Chown(dir, 61234, c.gid))
		if got := must.Get(nativeOwner(dir))(t); got != (native.Owner{UID: 61234, GID: c.want}) {
			t.Errorf("in a project of 61234:%d: %+v, want the group %d", c.gid, got, c.want)
		}
	}
}
