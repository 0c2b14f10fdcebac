package sandbox

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/sandbox/engine"
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
		{0, 65534},
	} {
		must.Do(t, os.Chown(dir, 61234, c.gid))
		if got := must.Get(nativeOwner(dir))(t); got != (native.Owner{UID: 61234, GID: c.want}) {
			t.Errorf("in a project of 61234:%d: %+v, want the group %d", c.gid, got, c.want)
		}
	}
}

// A program that reaches an engine's socket controls this host. A native sandbox asks no engine where it listens, and a
// mount that is read-only keeps no program from connecting.
func TestANativeSandboxHasNoSocketOfAnEngine(t *testing.T) {
	for name, at := range map[string]func(dir string){
		"e.sock":                      func(dir string) { t.Setenv("DOCKER_HOST", "unix://"+dir+"/e.sock") },
		"c.sock":                      func(dir string) { t.Setenv("CONTAINER_HOST", "unix://"+dir+"/c.sock") },
		"podman/podman.sock":          func(dir string) { t.Setenv("XDG_RUNTIME_DIR", dir) },
		"docker.sock":                 func(dir string) { t.Setenv("XDG_RUNTIME_DIR", dir) },
		".docker/run/docker.sock":     func(dir string) { t.Setenv("HOME", dir) },
		".docker/desktop/docker.sock": func(dir string) { t.Setenv("HOME", dir) },
		".colima/default/docker.sock": func(dir string) { t.Setenv("HOME", dir) },
		"link/docker.sock":            func(dir string) { t.Setenv("DOCKER_HOST", "unix://"+dir+"/link/docker.sock") },
	} {
		for _, asMount := range []bool{false, true} {
			dir := must.Get(filepath.EvalSymlinks(must.OpenDir(t)))(t)
			for _, v := range []string{"DOCKER_HOST", "CONTAINER_HOST", "XDG_RUNTIME_DIR"} {
				t.Setenv(v, "")
			}
			t.Setenv("HOME", "/nonexistent")
			must.Do(t, os.Symlink(".", filepath.Join(dir, "link")))
			socket := filepath.Join(dir, name)
			must.Do(t, os.MkdirAll(filepath.Dir(socket), 0o755))
			defer must.Get(net.Listen("unix", socket))(t).Close()
			at(dir)
			b := anyBox(t)
			if asMount {
				b.Spec.Mounts = []engine.Mount{{Source: dir, Target: "/m", ReadOnly: true}}
			} else {
				b.Dir = dir
			}
			p := &Prepared{Image: hostImage(), spec: b.Spec}
			_, err := p.runNative(t.Context(), b)
			var bad *ProjectError
			if !errors.As(err, &bad) || bad.Holds != must.Get(filepath.EvalSymlinks(socket))(t) || bad.Mount != asMount {
				t.Errorf("%s, in a mount: %v: %v; want it refused", name, asMount, err)
			}
		}
	}
}
