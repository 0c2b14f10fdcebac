package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/e2e/recipes"
	"github.com/ALRubinger/aileron/e2e/stub"
)

// A real agent's command waits while its request is held, and goes on once that is approved. Of a request that is not
// approved in time the agent says that it waits, sends it again, and finishes after the approval.
func TestAnAgentSaysThatItWaitsAndFinishesAfterTheApproval(t *testing.T) {
	for name, a := range map[string]prompted{
		"claude":   withOutput(prompts["claude"], "--output-format", "stream-json", "--verbose"),
		"opencode": prompts["opencode with anthropic"],
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			finishesAfterTheApproval(t, a)
		})
	}
}

func withOutput(a prompted, args ...string) prompted {
	a.args = append(slices.Clone(a.args), args...)
	return a
}

// saysThatItWaits is what the stub's model says, in an agent's own JSON.
var saysThatItWaits = regexp.MustCompile(`I wait for your approval of ([0-9A-Z]{26})`)

func finishesAfterTheApproval(t *testing.T, a prompted) {
	harness.NeedEngine(t, "podman")
	recipes.Need(t, "podman", recipes.Agent(a.agent))
	second, body := "curl -sS -X POST https://api.echo.example/echo --data second", "second"
	if a.agent == "opencode" {
		second, body = "asker write --json", ""
	}
	u := newUser(t, stub.Script{Again: true, Command: "[ -e first ] || curl -fsS -o first -X POST " +
		"https://api.echo.example/echo --data first; " + second + "; echo TOOL-RAN"}, a.connector, "ask")
	u.hold("8s")
	if a.config != "" {
		must.Do(t, os.WriteFile(filepath.Join(u.project, a.agent+".json"), []byte(a.config), 0o644))
	}
	output := filepath.Join(u.home, "output")
	flags := append([]string{"launch", "--sandbox=podman", "--keep=false", "--dir", u.project}, u.reach()...)
	cmd := u.command(append(append(flags, a.agent, "--"), a.args...)...)
	cmd.Stdout = must.Get(os.Create(output))(t)
	cmd.Stderr = cmd.Stdout
	said := func() string { return string(must.Get(os.ReadFile(output))(t)) }
	must.Do(t, cmd.Start())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = cmd.Wait() }()
	t.Cleanup(func() { _ = cmd.Process.Signal(os.Interrupt); <-ended })

	held := u.asked("first")
	u.must("approval", "approve", held.ID)
	var id []string
	harness.WaitFor(t, "the agent says that it waits", func() bool {
		id = saysThatItWaits.FindStringSubmatch(said())
		select {
		case <-ended:
			t.Fatalf("the agent ended before: %s", said())
		default:
		}
		return id != nil
	})
	if id[1] == held.ID {
		t.Fatalf("it waits for the request that was approved while it was held: %s", said())
	}
	posts := u.posts()
	if len(posts) != 1 || posts[0].Body != "first" {
		t.Errorf("before the second approval the service got %+v", posts)
	}
	q := u.must("approval", "show", id[1]).out
	if !strings.Contains(q, "asker write") || !strings.Contains(q, " of "+a.agent+"\n") ||
		body != "" && !strings.Contains(q, "| "+body+"\n") {
		t.Errorf("what it waits for is shown as\n%s", q)
	}
	u.must("approval", "approve", id[1])
	<-ended

	if code := cmd.ProcessState.ExitCode(); code != 0 {
		t.Fatalf("exit %d\n%s", code, said())
	}
	contains(t, "what the agent said", said(), "All done, says the stub.")
	posts = u.posts()
	if len(posts) != 2 || posts[1].Body != body || posts[1].Auth() != "Bearer "+secret {
		t.Errorf("the service got %+v", posts)
	}
	if strings.Contains(said(), secret[:16]) || strings.Contains(said(), modelKey[:16]) {
		t.Error("a secret is in the output")
	}
	u.approvedWere(held.ID, id[1])
	u.must("audit", "verify")
	if left := u.leftovers(); left != "" {
		t.Errorf("containers are left: %s", left)
	}
}

// posts are the requests that the echoing service got.
func (u *user) posts() (posts []stub.Seen) {
	for _, s := range u.origin.Seen() {
		if s.Host == stub.Echo {
			posts = append(posts, s)
		}
	}
	return posts
}

// approvedWere checks the log: each of these was approved by the owner, and one request passed by it. The agent had
// been told to come back for the second one.
func (u *user) approvedWere(ids ...string) {
	u.t.Helper()
	var approved, passed, told []string
	for _, r := range u.rows("--rows") {
		fields, _ := r["fields"].(map[string]any)
		id := fmt.Sprint(fields["approval_id"])
		switch {
		case r["event"] == "approval.approved":
			approved = append(approved, fmt.Sprint(id, " ", fields["surface"]))
		case r["decision"] == "proxied" && r["operation"] == "write":
			passed = append(passed, id)
		case r["reason"] == "approval_required" && r["decision"] == "rejected":
			told = append(told, id)
		}
	}
	if want := []string{ids[0] + " cli", ids[1] + " cli"}; !slices.Equal(approved, want) || !slices.Equal(passed, ids) {
		u.t.Errorf("approved were %v, and passed did %v, want %v", approved, passed, ids)
	}
	if len(told) == 0 || slices.Contains(told, ids[0]) {
		u.t.Errorf("told to come back were %v, want %s alone", told, ids[1])
	}
}
