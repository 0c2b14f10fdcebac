package sandbox_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/sandbox"
)

func TestWhereAProjectCanBeInASandbox(t *testing.T) {
	for _, at := range []string{"/code", "/home/ada/src/app", "/root/app", "/tmp/x", "/var/lib/jenkins/workspace/x",
		"/opt/app", "/home/agent/app", sandbox.Workspace, "/etcetera", "/srv/日本 'a' \"b\" \\c,:$(d)"} {
		if err := sandbox.CheckPlace(at); err != nil {
			t.Errorf("%s: %v", at, err)
		}
	}
	for at, why := range map[string]string{
		"/": "needs its own /", "/home": "needs its own", "/home/agent": "needs its own", "/tmp": "needs its own",
		"/root": "needs its own", "/var/lib": "needs its own", "/etc": "/etc in the sandbox",
		"/etc/app":           "/etc in the sandbox",
		"/usr/local/src/app": "/usr in the sandbox", "/run/user/0/x": "/run in the sandbox", "/dev/shm/x": "/dev",
		"/proc/1/cwd": "/proc", "/var/run/x": "/var/run", "/opt/aileron/x": "/opt/aileron", "/lib64": "/lib64",
		sandbox.Workspace + "/sub": sandbox.Workspace, // a mount there would make directories in the project
		"/a\nb":                    "characters", "/a\x1b[31m": "characters", "/a\xff": "characters", "/a/../b": "characters",
		"a": "characters", "/a/": "characters",
	} {
		if err := sandbox.CheckPlace(at); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %v, want %q", at, err, why)
		}
	}
}

// A file system that is mounted for all may have a repository that only its owner writes to.
func TestAProjectIsOpenToAllWithWhatIsInIt(t *testing.T) {
	dir := t.TempDir()
	open := func(want bool, when string) {
		t.Helper()
		if got := sandbox.OpenToAll(dir); got != want {
			t.Errorf("%s: %v, want %v", when, got, want)
		}
	}
	open(false, "of its owner")
	must.Do(t, os.Chmod(dir, 0o777))
	must.Do(t, os.Symlink("nowhere", filepath.Join(dir, "link")))
	open(true, "with a link")
	must.Do(t, os.Mkdir(filepath.Join(dir, ".git"), 0o755))
	open(false, "with a repository")
	must.Do(t, os.Chmod(filepath.Join(dir, ".git"), 0o777))
	open(true, "with a repository for all")
}
