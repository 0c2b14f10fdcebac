package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The image is built by aileron from its own recipe, and stays for the next
// run: it is the product's, not the test's.
func TestOpencodeFinishesAPromptWithAKeyThatItNeverSees(t *testing.T) {
	needPodman(t)
	u := newUser(t, `curl -sS https://api.github.com/user | tee out.txt; cat /proc/*/environ 2>/dev/null | tr '\0' '\n' > seen.txt; grep -rsF "stand/in""+SECRET" / --include='*' -l --exclude-dir=proc --exclude-dir=sys > found.txt; echo TOOL-RAN`)
	u.bind("anthropic", anthropicFQN)
	u.bind("github", githubFQN)
	// opencode asks before it runs a command; this user allows it.
	if err := os.WriteFile(filepath.Join(u.project, "opencode.json"), []byte(`{"permission":{"bash":"allow","external_directory":"allow"}}`), 0o644); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"launch", "--sandbox=podman", "--dir", u.project}, u.reach()...)
	r := u.run(append(args, "opencode", "--", "run", "-m", "anthropic/claude-sonnet-4-5", "--format", "json", "please run the tool")...)
	if r.code != 0 {
		t.Fatalf("exit %d\n%s\n%s", r.code, r.out, r.err)
	}
	contains(t, "what opencode said", r.out, "TOOL-RAN", "All done, says the stand-in.")
	if out, err := os.ReadFile(filepath.Join(u.project, "out.txt")); err != nil || !strings.Contains(string(out), "octo-stand-in") {
		t.Errorf("the tool's output: %q, %v", out, err)
	}
	if found, err := os.ReadFile(filepath.Join(u.project, "found.txt")); err != nil || len(found) > 0 {
		t.Errorf("the secret stands in the box, in %s (%v)", found, err)
	}
	seen, err := os.ReadFile(filepath.Join(u.project, "seen.txt"))
	if err != nil || strings.Contains(string(seen), secret[:16]) || !strings.Contains(string(seen), "ANTHROPIC_API_KEY=") {
		t.Errorf("the environments in the box: %d bytes, %v", len(seen), err)
	}
	calls := 0
	for _, s := range u.origin.Seen() {
		if s.Path == "/v1/messages" {
			calls++
			if s.APIKey != secret || strings.Contains(s.Body, secret) {
				t.Errorf("the provider saw the key %q", s.APIKey)
			}
		}
	}
	if calls < 2 {
		t.Errorf("the provider saw %d calls, want at least 2", calls)
	}
	if strings.Contains(r.out+r.err, secret[:16]) {
		t.Error("the secret is in the output")
	}
}

// gh is Debian's own, in an image of the test's that is removed with it.
func TestGhInABoxWorksWithItsPlaceholder(t *testing.T) {
	needPodman(t)
	u := newUser(t, "")
	u.bind("github", githubFQN)
	base := strings.TrimSpace(u.must("sandbox", "build", "--sandbox=podman", "--if-missing").out)
	image := buildImage(t, "FROM "+base+"\nUSER root\nRUN apt-get update -qq && apt-get install -y -qq --no-install-recommends gh git >/dev/null\nUSER agent\n")
	r := u.box("gh api user; gh issue list -R o/r; gh auth status; env | grep GH_TOKEN", "--image", image)
	contains(t, "gh", r.out, "octo-stand-in", "An issue of the stand-in", "GH_TOKEN=placeholder")
	for _, s := range u.origin.Seen() {
		if s.Auth != "Bearer "+secret {
			t.Errorf("the stand-in saw %q", s.Auth)
		}
	}
}

// buildImage builds an image of the test's own and removes it with the test.
func buildImage(t *testing.T, dockerfile string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte(dockerfile), 0o600); err != nil {
		t.Fatal(err)
	}
	name := "localhost/aileron/e2e-gh:test"
	cmd := exec.Command("podman", "build", "--network", "host", "-t", name, dir)
	cmd.Env = podmanEnv(t)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the test's image: %v\n%s", err, out)
	}
	t.Cleanup(func() {
		rm := exec.Command("podman", "rmi", "-f", name)
		rm.Env = podmanEnv(t)
		_ = rm.Run()
	})
	return name
}

// podmanEnv lets podman's own command line run where its defaults fail; see
// docs/sandbox.md.
func podmanEnv(t *testing.T) []string {
	t.Helper()
	conf := filepath.Join(t.TempDir(), "containers.conf")
	text := "[containers]\ndefault_ulimits = [\"nofile=4096:4096\", \"nproc=4096:4096\"]\n[engine]\ncgroup_manager = \"cgroupfs\"\nevents_logger = \"file\"\n"
	if _, err := exec.LookPath("runc"); err == nil {
		text += "runtime = \"runc\"\n"
	}
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return append(os.Environ(), "CONTAINERS_CONF="+conf)
}
