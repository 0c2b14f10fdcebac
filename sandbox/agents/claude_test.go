package agents_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/sandbox/agents"
)

// The state is kept: what an unattended session accepts must not stand in one that is attended, whose image or project
// may set IS_SANDBOX.
func TestTheDisclaimerIsAcceptedForAnUnattendedSessionAlone(t *testing.T) {
	if _, err := exec.LookPath("jq"); err != nil {
		t.Skip("no jq, which the recipe installs")
	}
	dir := t.TempDir()
	a, _ := agents.Find("claude")
	for _, c := range []struct {
		unattended string
		want       bool
	}{{"0", false}, {"1", true}, {"0", false}, {"1", true}, {"", false}} {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", a.Prelude)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "CLAUDE_CONFIG_DIR=" + dir, "IS_SANDBOX=1",
			"AILERON_UNATTENDED=" + c.unattended}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		var state map[string]any
		text := must.Get(os.ReadFile(filepath.Join(dir, ".claude.json")))(t)
		must.Do(t, json.Unmarshal(text, &state))
		if got, there := state["bypassPermissionsModeAccepted"]; there != c.want || there && got != true ||
			state["hasCompletedOnboarding"] != true {
			t.Errorf("AILERON_UNATTENDED=%s: accepted is %v, want %v; state %s", c.unattended, got, c.want, text)
		}
	}
}
