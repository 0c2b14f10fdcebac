package recipes

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
)

// onHost are the programs of agents in their images. Pi's needs the image's Node.js, and is none of them.
var onHost = map[string]string{
	"claude":   "/usr/local/bin/claude",
	"codex":    "/opt/codex/bin/codex",
	"opencode": "/usr/local/bin/opencode",
}

// OnHost returns a directory with the programs of agents, for a test that starts them without a sandbox. They are those
// of the agents' images, which Podman mounts until the test ends: a copy of them would be a gigabyte. It does that for
// root alone.
func OnHost(t testing.TB, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		script := "#!/bin/sh\nexec " + mount(t, Agent(name)) + onHost[name] + " \"$@\"\n"
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755))
	}
	return dir
}

// mount mounts an image until the test ends, and returns the directory.
func mount(t testing.TB, img Image) string {
	t.Helper()
	if os.Geteuid() != 0 {
		if os.Getenv("CI") != "" {
			t.Fatal("this needs root, for whom Podman mounts an image")
		}
		t.Skip("Podman mounts images for root alone")
	}
	Need(t, "podman", img)
	s := must.Get(Open(os.Stderr))(t)
	t.Cleanup(func() { _ = s.Close() })
	out, err := s.tool(t.Context(), "podman", "image", "mount", img.Ref)
	if err != nil {
		t.Fatalf("mount %s: %v\n%s", img.Ref, err, out)
	}
	t.Cleanup(func() {
		if out, err := s.tool(context.WithoutCancel(t.Context()), "podman", "image", "umount", img.Ref); err != nil {
			t.Errorf("unmount %s: %v\n%s", img.Ref, err, out)
		}
	})
	return strings.TrimSpace(string(out))
}

// HostOf returns the words before a command that run it as an ordinary user of a host on which all of an image is
// installed: in a mount namespace of its own, with the image's /usr, /etc and /opt. dir is the user's home.
func HostOf(t testing.TB, img Image, dir string) []string {
	t.Helper()
	id := strconv.Itoa(harness.RootlessUser)
	const script = `for d in usr etc opt; do mount --bind "$0/$d" /$d; done; exec "$@"`
	return []string{"unshare", "--mount", "--propagation", "private", "sh", "-euc", script, mount(t, img),
		"setpriv", "--reuid=" + id, "--regid=" + id, "--clear-groups", "--inh-caps=-all", "env", "HOME=" + dir,
		"PATH=/usr/local/bin:/usr/bin:/bin", "DOCKER_HOST=", "XDG_RUNTIME_DIR="}
}
