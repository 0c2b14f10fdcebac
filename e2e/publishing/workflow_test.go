package publishing

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/spec/scaffold"
)

// actionlint returns the program that `just lint` builds, or that is installed.
func actionlint(t *testing.T) string {
	t.Helper()
	cache := cmp.Or(os.Getenv("XDG_CACHE_HOME"), filepath.Join(os.Getenv("HOME"), ".cache"))
	for _, name := range []string{filepath.Join(cache, "aileron", "bin", "actionlint"), "actionlint"} {
		if found, err := exec.LookPath(name); err == nil {
			return found
		}
	}
	harness.Need(t, "actionlint: just lint builds it")
	return ""
}

// The workflow that connector new writes is one that GitHub accepts, by the linter of the repository's own.
func TestTheWorkflowOfAConnectorIsValid(t *testing.T) {
	lint := actionlint(t)
	dir := t.TempDir()
	for name, text := range map[string][]byte{
		"connector.yml":      scaffold.Workflow(""),
		"connector-jira.yml": scaffold.Workflow("connectors/jira"),
	} {
		file := filepath.Join(dir, name)
		must.Do(t, os.WriteFile(file, text, 0o600))
		if out, err := exec.CommandContext(t.Context(), lint, "-no-color", file).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
	// It is this test that would see a mistake.
	wrong := strings.Replace(string(scaffold.Workflow("")), "runs-on:", "run-on:", 1)
	file := filepath.Join(dir, "wrong.yml")
	must.Do(t, os.WriteFile(file, []byte(wrong), 0o600))
	if out, err := exec.CommandContext(t.Context(), lint, "-no-color", file).CombinedOutput(); err == nil {
		t.Errorf("a workflow with a wrong key is accepted: %s", out)
	}
}
