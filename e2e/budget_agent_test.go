package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/e2e/recipes"
	"github.com/ALRubinger/aileron/e2e/stub"
)

// A real agent whose budget is used up ends, and shows why: it does not try again without end, and its model gets
// nothing more. A day's budget holds for the next session too, also after one that was killed in the middle.
func TestAnAgentShowsThatItsBudgetIsUsedUp(t *testing.T) {
	// What an agent asks of its model until it is told what the tool said: opencode has it make a title, too.
	for name, tokens := range map[string]int{"claude": 10, "opencode with anthropic": 15} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name != "claude" {
				harness.Turn(t)
			}
			showsItsBudget(t, prompts[name], tokens)
		})
	}
}

func showsItsBudget(t *testing.T, a prompted, tokens int) {
	harness.NeedEngine(t, "podman")
	recipes.Need(t, "podman", recipes.Agent(a.agent))
	u := newUser(t, stub.Script{Command: "echo TOOL-RAN", Hold: true}, a.connector)
	if a.config != "" {
		must.Do(t, os.WriteFile(filepath.Join(u.project, a.agent+".json"), []byte(a.config), 0o644))
	}
	launch := func(flags ...string) []string {
		flags = append([]string{"launch", "--sandbox=podman", "--keep=false", "--dir", u.project}, flags...)
		return append(append(append(flags, u.reach()...), a.agent, "--"), a.args...)
	}

	// Each response of the model has 5 tokens.
	r := u.run(launch("--budget", "output_tokens=5")...)
	contains(t, "what the agent said", r.out+r.err, "the budget of the session is used up: ", "of 5 output_tokens")
	if strings.Contains(r.out, "All done, says the stub.") {
		t.Errorf("the agent went on: %s", r.out)
	}

	// The first session of a day is killed while the model thinks about the tool's result.
	must.Do(t, os.WriteFile(filepath.Join(u.home, "config.toml"),
		fmt.Appendf(nil, "[budget.day]\noutput_tokens = %d\n", tokens),
		0o600))
	before := u.requestsTo(a.endpoint)
	killed := u.command(launch()...)
	must.Do(t, killed.Start())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = killed.Wait() }()
	if !u.modelIsTold("TOOL-RAN", ended) {
		t.Fatal("the agent ended before the model was told what the tool said")
	}
	must.Do(t, killed.Process.Kill())
	<-ended
	asked := u.requestsTo(a.endpoint)
	if asked-before < 2 {
		t.Fatalf("the first session of the day asked the model %d times, want twice or more", asked-before)
	}
	r = u.run(launch()...)
	contains(t, "what the agent said", r.out+r.err, "the budget of the day is used up: ",
		fmt.Sprintf("of %d output_tokens", tokens))
	if more := u.requestsTo(a.endpoint) - asked; more != 0 {
		t.Errorf("the model was asked %d times more after the budget of the day was used up", more)
	}
	if rows := u.rows("--reason", "budget_exhausted"); len(rows) > 40 {
		t.Errorf("%d requests were denied in three sessions: the agent tries again without end", len(rows))
	}
	close(u.origin.Release)
	waitFor(t, func() bool { return u.run("sandbox", "prune").code == 0 && u.leftovers() == "" })
}

// requestsTo returns how many requests a model had at a path.
func (u *user) requestsTo(path string) (n int) {
	for _, s := range u.origin.Seen() {
		if s.Path == path {
			n++
		}
	}
	return n
}

// Sandboxes that run at once, each behind a process of its own, share what is left of a day.
func TestSandboxesShareADay(t *testing.T) {
	t.Parallel()
	u := newUser(t, stub.Script{}, "ask")
	const limit, each = 12, 10
	must.Do(t, os.WriteFile(filepath.Join(u.home, "config.toml"), fmt.Appendf(nil, "[budget.day]\nrequests = %d\n", limit),
		0o600))
	names := []string{"one", "two"}
	results := make([]result, len(names))
	var boxes sync.WaitGroup
	for i, name := range names {
		boxes.Go(func() {
			results[i] = u.box(fmt.Sprintf(`touch %s; for n in $(seq 600); do [ -e one ] && [ -e two ] && break; sleep 0.1; done
			for n in $(seq %d); do curl -s -o /dev/null -w '%%{http_code}\n' https://api.echo.example/echo; done`, name, each))
		})
	}
	boxes.Wait()
	sent, denied := 0, 0
	for i, r := range results {
		passed := strings.Count(r.out, "200\n")
		if sent, denied = sent+passed, denied+strings.Count(r.out, "429\n"); r.code != 0 || passed == 0 {
			t.Errorf("the sandbox %s: exit %d, %d requests passed\n%s%s", names[i], r.code, passed, r.out, r.err)
		}
	}
	// Each session may exceed it by the one request that it has under way.
	if sent < limit || sent > limit+len(names) || sent+denied != len(names)*each || len(u.posts()) != sent {
		t.Errorf("of a day's %d requests, %d passed, %d were denied, and the service got %d", limit, sent, denied,
			len(u.posts()))
	}
	if used := u.must("audit", "used", "--by", "session", "--json").out; strings.Count(used, `"requests":`) != len(names) {
		t.Errorf("both sessions have used something: %s", used)
	}
}
