package day

import (
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/e2e/recipes"
	"github.com/ALRubinger/aileron/sandbox"
)

// user is who runs aileron.
type user struct {
	id int
	as []string // the words before a command; none: this process's user
}

// ordinary is the ID of a user without rights on this machine, and of the owner of a project.
const ordinary = 4321

// engineOf is the engine that has the images of an engine's sandboxes.
func engineOf(engine string) string {
	if engine == sandbox.Native {
		return "podman"
	}
	return engine
}

// userOf returns a user of an engine, by what it may do: "" is this process's user, "rootless" has an engine of its
// own, "group" reaches this machine's engine by the group of its socket, and "native" has none, and a host with all of
// the image. Its files are in dir.
func userOf(t *testing.T, kind, engine, dir string, image recipes.Image, images ...string) user {
	t.Helper()
	switch kind {
	case "":
		return user{id: os.Geteuid()}
	case "native":
		home := filepath.Join(dir, "home")
		must.Do(t, os.Mkdir(home, 0o700))
		must.Do(t, os.Chown(home, harness.RootlessUser, harness.RootlessUser))
		return user{id: harness.RootlessUser, as: recipes.HostOf(t, image, home)}
	case "rootless":
		as := harness.Rootless(t, dir)
		harness.HandOver(t, images, engine, as...)
		return user{id: harness.RootlessUser, as: as}
	}
	if os.Geteuid() != 0 || !harness.Has(t, "setpriv") {
		harness.Need(t, "root and setpriv: another user is made for the test")
	}
	id := strconv.Itoa(ordinary)
	home := filepath.Join(dir, "home")
	must.Do(t, os.Mkdir(home, 0o700))
	must.Do(t, os.Chown(home, ordinary, ordinary))
	return user{id: ordinary, as: []string{"setpriv", "--reuid", id, "--regid", id, "--clear-groups", "env", "-i",
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "DOCKER_HOST=unix://" + socketOf(t, dir)}}
}

// socketOf is a socket for the group ordinary that leads to this machine's Docker, as the group docker has one. The
// socket of a private daemon is where only root may go.
func socketOf(t *testing.T, dir string) string {
	t.Helper()
	const host = "{{.Endpoints.docker.Host}}"
	out, err := exec.CommandContext(t.Context(), "docker", "context", "inspect", "-f", host).Output()
	at, isUnix := strings.CutPrefix(strings.TrimSpace(string(out)), "unix://")
	if err != nil || !isUnix {
		t.Fatalf("find Docker's socket: %v, %q", err, out)
	}
	path := filepath.Join(dir, "docker.sock")
	l := must.Get(net.Listen("unix", path))(t)
	t.Cleanup(func() { _ = l.Close() })
	must.Do(t, os.Chown(path, 0, ordinary))
	must.Do(t, os.Chmod(path, 0o660))
	go func() { // ends with the listener
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go relay(client.(*net.UnixConn), at)
		}
	}()
	return path
}

// relay copies between a connection and the socket at a path, each direction to its own end: an attached container's
// input ends before its output does.
func relay(client *net.UnixConn, path string) {
	defer client.Close()
	server, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return
	}
	defer server.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(server, client)
		_ = server.CloseWrite()
	}()
	_, _ = io.Copy(client, server)
	_ = client.CloseWrite()
	<-done
}
