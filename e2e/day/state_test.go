package day

import (
	"path/filepath"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/services"
	"github.com/ALRubinger/aileron/sandbox"
)

// judgeState searches what the agent has kept for the secrets of the day: it has pushed with the token, and seen what
// came back. Another user's engine keeps its volumes elsewhere.
func (p *person) judgeState() {
	p.t.Helper()
	if p.cell.engine == sandbox.Native {
		found, _ := filepath.Glob(filepath.Join(p.dir, "home/.local/state/aileron-native/*/*/claude-*"))
		if len(found) != 1 {
			p.t.Fatalf("the states are %q, want one", found)
		}
		harness.SearchDir(p.t, found[0], "what is summed", services.Token, services.Key, passphrase)
		return
	}
	if p.cell.user != "" {
		return
	}
	states := harness.States(p.t, p.cell.engine, p.home)
	if len(states) != 1 {
		p.t.Fatalf("the states are %q, want one", states)
	}
	harness.SearchState(p.t, p.cell.engine, states[0], "what is summed", services.Token, services.Key, passphrase)
}
