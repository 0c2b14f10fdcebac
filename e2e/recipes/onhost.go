package recipes

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
	if os.Geteuid() != 0 {
		if os.Getenv("CI") != "" {
			t.Fatal("this needs root, for whom Podman mounts an image")
		}
		t.Skip("Podman mounts images for root alone")
	}
	s := must.Get(Open(os.Stderr))(t)
	t.Cleanup(func() { _ = s.Close() })
	dir := t.TempDir()
	for _, name := range names {
		img := Agent(name)
		Need(t, "podman", img)
		out, err := s.tool(t.Context(), "podman", "image", "mount", img.Ref)
		if err != nil {
			t.Fatalf("mount %s: %v\n%s", img.Ref, err, out)
		}
		t.Cleanup(func() {
			if out, err := s.tool(context.WithoutCancel(t.Context()), "podman", "image", "umount", img.Ref); err != nil {
				t.Errorf("unmount %s: %v\n%s", img.Ref, err, out)
			}
		})
		script := "#!/bin/sh\nexec " + strings.TrimSpace(string(out)) + onHost[name] + " \"$@\"\n"
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755))
	}
	return dir
}
