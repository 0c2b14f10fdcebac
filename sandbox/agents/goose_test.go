package agents_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/sandbox/agents"
	"github.com/ALRubinger/aileron/sandbox/dockerfile"
)

// What the user has for Goose to read stays, and so does a link of theirs.
func TestThePreludeOfGooseReplacesNoHints(t *testing.T) {
	a, _ := agents.Find("goose")
	for name, c := range map[string]struct{ made, want string }{
		"none": {"", ""}, "a file": {"echo own >%s", "own\n"}, "a link": {"ln -s /nowhere %s", ""},
	} {
		config := t.TempDir()
		hints := filepath.Join(config, "goose", ".goosehints")
		must.Do(t, os.Mkdir(filepath.Dir(hints), 0o700))
		script := strings.ReplaceAll(c.made, "%s", hints) + "\n" + a.Prelude +
			`echo "$GOOSE_DISABLE_KEYRING $GOOGLE_API_KEY ${hints-unset}"`
		cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "XDG_CONFIG_HOME=" + config, "GEMINI_API_KEY=placeholder"}
		out, err := cmd.CombinedOutput()
		if err != nil || string(out) != "1 placeholder unset\n" {
			t.Fatalf("%s: %q, %v", name, out, err)
		}
		if data, _ := os.ReadFile(hints); string(data) != c.want {
			t.Errorf("%s: Goose reads %q", name, data)
		}
	}
}

// The lines of the manual make an image as they are, but for the hash.
func TestTheManualsDockerfileIsBuilt(t *testing.T) {
	manual := string(must.Get(os.ReadFile("../../docs/agents.md"))(t))
	_, block, _ := strings.Cut(manual, "```dockerfile\nARG BASE\nFROM ${BASE}\nUSER root\nARG GOOSE_VERSION=\n")
	block, _, ok := strings.Cut(block, "```")
	if !ok || !strings.Contains(block, "ARG GOOSE_SHA256=\n") || !strings.Contains(block, "sha256sum -c -") {
		t.Fatalf("the manual has no Dockerfile for Goose that compares a hash: %q", block)
	}
	if _, err := dockerfile.Read([]byte("ARG BASE\nFROM ${BASE}\n"+block), dockerfile.OnBase); err != nil {
		t.Error(err)
	}
}
