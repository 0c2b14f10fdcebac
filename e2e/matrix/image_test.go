package matrix

import (
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/recipes"
)

// needImage is an image with clients, by the name of its recipe in
// e2e/recipes. It stays in the engine's store; to remove those of all suites:
//
//	podman rmi $(podman images -q --filter reference=localhost/aileron-*)
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
	image := recipes.Clients(name)
	recipes.Need(t, engine, image)
	return image.Ref
}

// need skips the test for a reason; in CI, which has all, it fails.
func need(t *testing.T, reason string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatal(reason + ", and in CI the matrix must run")
	}
	t.Skip(reason)
}

// registries are where the image's clients go by
// default. They are asked, so that it is really their own configuration
// that works in a box, and mirrors that an image was made with are no matter.
// A client that an image has not is a name that leads nowhere.
type registries struct{ npm, goproxy, apt *url.URL }

func registriesOf(t *testing.T, engine, image string) registries {
	t.Helper()
	cmd := exec.Command(engine, "run", "--rm", "--network", "none", image, "sh", "-euc",
		`npm config get registry 2>/dev/null || echo https://npm.invalid
		{ go env GOPROXY 2>/dev/null || echo https://go.invalid; } | cut -d, -f1
		grep -rhoE 'https?://[^ ]+' /etc/apt/sources.list* | head -n 1`)
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
