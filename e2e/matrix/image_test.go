package matrix

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
)

// needImage is an image with clients, by the name of its recipe below
// testdata, built when it is missing. It stays in the engine's store, as the
// agents' images do; to remove it:
//
//	podman rmi $(podman images -q localhost/aileron-matrix)
func needImage(t *testing.T, engine, name string) string {
	t.Helper()
	if _, err := exec.LookPath("podman"); err != nil {
		need(t, "there is no podman: scripts/prepare installs it")
	}
	if engine == "docker" {
		if err := exec.Command("docker", "version").Run(); err != nil {
			need(t, "no Docker daemon answers: scripts/with-docker starts one for a command")
		}
	}
	recipe := os.DirFS(filepath.Join("testdata", name))
	sum := sha256.New()
	if err := fs.WalkDir(recipe, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(recipe, path)
		sum.Write([]byte(path))
		sum.Write(data)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	image := "localhost/aileron-matrix:" + hex.EncodeToString(sum.Sum(nil))[:12]
	if name != "image" {
		image = strings.Replace(image, "matrix:", "matrix:"+name+"-", 1)
	}
	podman := func(args ...string) ([]byte, error) {
		cmd := exec.Command("podman", args...)
		cmd.Env = harness.EngineEnv(t)
		return cmd.CombinedOutput()
	}
	if _, err := podman("image", "exists", image); err != nil {
		buildImage(t, podman, recipe, image)
	}
	if engine == "docker" && exec.Command("docker", "image", "inspect", image).Run() != nil {
		t.Logf("handing %s to Docker (once)", image)
		// Not built again there: Docker's classic builder knows no mounts.
		cmd := exec.Command("sh", "-euc", `podman save --quiet "$1" | docker load --quiet`, "-", image)
		cmd.Env = harness.EngineEnv(t)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("hand the image to Docker: %v\n%s", err, out)
		}
	}
	return image
}

func buildImage(t *testing.T, podman func(...string) ([]byte, error), recipe fs.FS, image string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, recipe); err != nil {
		t.Fatal(err)
	}
	roots, err := os.ReadFile("/etc/ssl/certs/ca-certificates.crt")
	if err != nil {
		need(t, "this host has no bundle of roots to build the image with")
	}
	if err := os.WriteFile(filepath.Join(dir, "roots.pem"), roots, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Logf("building %s (once)", image)
	// The host's network, as aileron builds its own images.
	if out, err := podman("build", "--network", "host", "--layers=false", "--label", "aileron.image=1", "-t", image, dir); err != nil {
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		need(t, "the image with the clients could not be built:\n"+strings.Join(lines[max(0, len(lines)-15):], "\n"))
	}
}

// need skips the test for a reason; in CI, which has all, it fails.
func need(t *testing.T, reason string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatal(reason + ", and in CI the matrix must run")
	}
	t.Skip(reason)
}

// registries are where the image's clients go when nobody tells them
// otherwise. They are asked, so that it is really their own configuration
// that works in a box, and mirrors that an image was made with are no matter.
// A client that an image has not is a name that leads nowhere.
type registries struct{ npm, goproxy, apt *url.URL }

func registriesOf(t *testing.T, image string) registries {
	t.Helper()
	cmd := exec.Command("podman", "run", "--rm", "--network", "none", image, "sh", "-euc",
		`npm config get registry 2>/dev/null || echo https://npm.invalid; { go env GOPROXY 2>/dev/null || echo https://go.invalid; } | cut -d, -f1; grep -rhoE 'https?://[^ ]+' /etc/apt/sources.list* | head -n 1`)
	cmd.Env = harness.EngineEnv(t)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("ask the clients for their registries: %v", err)
	}
	var found []*url.URL
	for line := range strings.FieldsSeq(string(out)) {
		u, err := url.Parse(line)
		if err != nil || u.Hostname() == "" {
			t.Fatalf("the clients name %q as their registry", line)
		}
		found = append(found, u)
	}
	if len(found) != 3 {
		t.Fatalf("the clients name the registries %q", out)
	}
	return registries{found[0], found[1], found[2]}
}
