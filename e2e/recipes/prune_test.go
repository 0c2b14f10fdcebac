package recipes

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
)

// Podman has three images with more packages here, all of this test: on an image that is kept, on one that is not, and
// on one that is removed already.
func TestAnImageOfPackagesIsStaleWithTheImageBelow(t *testing.T) {
	harness.NeedEngine(t, "podman")
	s, _ := openStore(t)
	// A name of this test's own: a suite beside it may prune what recipes made once.
	name := func(image string) string {
		return "localhost/recipes-test-" + filepath.Base(s.dir) + "/" + image + ":1"
	}
	build := func(ref, below, content string) {
		t.Helper()
		dir := t.TempDir()
		for file, text := range map[string]string{
			"Dockerfile": "FROM " + below + "\nCOPY content /" + content + "\n", "content": content + s.dir,
		} {
			must.Do(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600))
		}
		if out, err := s.tool(t.Context(), "podman", "build", "--network", "none", "-t", ref, dir); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	remove := func(refs ...string) {
		cmd := exec.Command("podman", append([]string{"rmi"}, refs...)...)
		cmd.Env = s.env
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	}
	build(name("kept"), "scratch", "kept")
	build(name("old"), "scratch", "old")
	build(name("packages-kept"), name("kept"), "packages")
	build(name("packages-old"), name("old"), "packages")
	t.Cleanup(func() { remove(name("packages-kept"), name("packages-old"), name("kept")) })
	for _, below := range []string{"there", "removed"} {
		if below == "removed" {
			remove(name("old"))
		}
		for packages, stale := range map[string]bool{"packages-kept": false, "packages-old": true} {
			got, err := s.isStale(t.Context(), "podman", name(packages), []string{name("kept")})
			if err != nil || got != stale {
				t.Errorf("%s with the old image %s is stale: %v, %v; want %v", packages, below, got, err, stale)
			}
		}
	}
}
