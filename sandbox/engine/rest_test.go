package engine

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ALRubinger/aileron/e2e/must"
)

// The timers of an engine's process may be late while nothing is asked of it, and only then.
func TestAnEngineRestsBetweenCalls(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "cat")
	stdin := must.Get(cmd.StdinPipe())(t)
	must.Do(t, cmd.Start())
	defer func() { _ = stdin.Close(); _ = cmd.Wait() }()
	pid := cmd.Process.Pid
	slack := func() string {
		return strings.TrimSpace(string(must.Get(os.ReadFile(slackFile(pid)))(t)))
	}
	before := slack()
	if os.WriteFile(slackFile(pid), []byte(before), 0) != nil {
		t.Skip("the kernel does not let this user set another process's slack")
	}
	const late = "400000000"
	synctest.Test(t, func(t *testing.T) {
		r := newRest(pid)
		check := func(when, want string) {
			t.Helper()
			synctest.Wait()
			if got := slack(); got != want {
				t.Errorf("%s: its timers may be %s ns late, want %s", when, got, want)
			}
		}
		pass := func(d time.Duration) { <-time.After(d) } // of the bubble
		r.begin()
		r.begin()
		r.end()
		pass(restAfter + time.Millisecond)
		check("during a call", before)
		r.end()
		pass(restAfter - time.Millisecond)
		check("just after a call", before)
		pass(2 * time.Millisecond)
		check("a moment after the last call", late)
		r.begin()
		check("during the next call", before)
		pass(2 * restAfter)
		check("long during it", before)
		r.end()
		pass(restAfter + time.Millisecond)
		check("after it", late)
		r.begin()
		check("at the end", before)
		other := &rest{pid: pid, process: strings.Replace(r.process, "/", "/1", 1)}
		other.start()
		check("when the number belongs to another process now", before)
	})
	none := newRest(-1)
	none.begin() // of no process
	none.end()
}
