package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/imagefs"
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

// What trusts the session, and what finds a program, follows the links of this host into its /etc, and back.
func TestTheEtcOfThisHostIsLookedInto(t *testing.T) {
	p := must.Get(Prepare(t.Context(), Spec{Engine: Native, Dir: t.TempDir()}))(t)
	defer p.Close()
	host := must.Get(p.OpenImage(t.Context()))(t)
	defer host.Close()
	for _, name := range []string{"/etc/ssl/certs", "/etc/alternatives", "/etc/ld.so.cache", "/bin/sh", "/usr/bin/awk"} {
		real, err := filepath.EvalSymlinks(name)
		if err != nil {
			continue // this host has none
		}
		if place, err := imagefs.Resolve(host, name[1:]); err != nil || "/"+place.Path != real || !place.Exists() {
			t.Errorf("%s leads to %+v, %v; want %s", name, place, err, real)
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

// slowly is a caller's stream that takes each write after a time.
type slowly struct {
	bytes.Buffer
	after time.Duration
}

func (w *slowly) Write(p []byte) (int, error) {
	<-time.After(w.after)
	return w.Buffer.Write(p)
}

// A command may leave an end of its streams to a process that outlives it, of another sandbox or of this host. That
// does not hold up the end, whether it writes or not; what the command wrote arrives.
func TestTheEndOfANativeSandboxWaitsForNoOtherProcess(t *testing.T) {
	for name, other := range map[string]func(w io.Writer){
		"silent": func(io.Writer) {},
		"now and then": func(w io.Writer) {
			for range 1000 {
				<-time.After(time.Second)
				if _, err := io.WriteString(w, "."); err != nil {
					return
				}
			}
		},
		"without end": func(w io.Writer) {
			for range 1000 {
				if _, err := w.Write(make([]byte, 32<<10)); err != nil {
					return
				}
			}
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			in, stdin := io.Pipe()
			stdout, out := io.Pipe()
			stderr, errs := io.Pipe()
			taken := slowly{after: time.Minute}
			if name == "now and then" {
				taken.after = 0
			}
			var ended time.Time
			r := &nativeRunning{made: &native.Sandbox{Stdin: stdin, Stdout: stdout, Stderr: stderr}}
			r.b.Stdout, r.b.Stderr = &taken, io.Discard
			r.b.Ended = func() { ended = time.Now() }
			r.follow()
			_, _ = fmt.Fprint(out, "last words")
			over := time.Now()
			gone := make(chan struct{})
			go func() { defer close(gone); other(out) }()
			ctx, cancel := context.WithTimeout(t.Context(), 6*time.Hour)
			defer cancel()
			code, err := r.exit(ctx, native.Exit{Code: 7})
			if code != 7 || err != nil || !strings.HasPrefix(taken.String(), "last words") {
				t.Errorf("%s: exit %d, %v with %q", name, code, err, taken.String()[:min(20, taken.Len())])
			}
			if !ended.Equal(over) {
				t.Errorf("%s: it was told that the command has ended %v later", name, ended.Sub(over))
			}
			if took := time.Since(over); took > 3*time.Hour {
				t.Errorf("%s: the end took %v", name, took)
			}
			_ = errors.Join(in.Close(), errs.Close())
			<-gone
		})
	}
}
