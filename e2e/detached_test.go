package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/recipes"
	"github.com/ALRubinger/aileron/e2e/stub"
)

// An agent that is left running starts without a terminal, is found at its prompt by the first that is attached, draws
// its screen anew for the next, and hears both.
func TestAnAgentIsLeftRunning(t *testing.T) {
	for name, a := range interactives {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			needPodman(t)
			recipes.Need(t, "podman", recipes.Agent(name))
			u := newUser(t, stub.Script{}, a.connector)
			args := append([]string{"launch", "--detach", "--sandbox=podman", "--keep=false", "--dir", u.project}, u.reach()...)
			id := strings.TrimSpace(u.must(append(append(args, name, "--"), a.args...)...).out)
			t.Cleanup(func() {
				if strings.Contains(u.must("session", "show", id).out, "running") {
					u.must("session", "stop", id)
				}
				harness.Poll(harness.Patience, 100*time.Millisecond, func() bool {
					return !strings.Contains(u.must("session", "show", id).out, "running")
				})
			})
			first := newScreen(t, u.command("session", "attach", id))
			first.waitFor(a.ready)
			first.types("say-something")
			first.Keys("\x10\x11")
			first.waitFor("detachedfrom" + id)
			first.Wait()
			second := newScreen(t, u.command("session", "attach", id))
			second.waitFor("say-something")
			second.Keys("\r")
			second.waitFor("Alldone,saysthestub.")
			second.quit(a.quit)
			if logs := u.must("session", "logs", id).out; !strings.Contains(logs, "stub.") {
				t.Errorf("session logs prints %d bytes without the answer", len(logs))
			}
		})
	}
}
