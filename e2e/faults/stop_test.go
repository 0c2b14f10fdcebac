package faults

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/sandbox"
)

// stopped is the cause of a session that was asked to stop.
const stopped = "stopped by aileron session stop"

// listed waits until the session is listed: its description is there.
func (r *running) listed() {
	r.u.t.Helper()
	harness.WaitFor(r.u.t, "the session is listed", func() bool {
		if res, ended := r.over(); ended {
			r.u.t.Fatalf("it ended with %d: %s%s", res.code, res.out, res.err)
		}
		found, _ := filepath.Glob(filepath.Join(r.u.home, "sessions", "*", "session.json"))
		if len(found) == 1 {
			r.session = filepath.Base(filepath.Dir(found[0]))
		}
		return len(found) == 1
	})
}

// A session that is listed can be stopped, whatever it is doing, and reports
// it: the stop comes at moments all over a start.
func TestASessionIsStoppedInEveryPhaseOfItsStart(t *testing.T) {
	t.Parallel()
	step := 300 * time.Millisecond
	if longForm() {
		step = 100 * time.Millisecond
	}
	stopsAt := func(u *user, code func(caught bool) int, args ...string) {
		for wait := time.Duration(0); wait <= 1200*time.Millisecond; wait += step {
			r := u.begin(args...)
			r.listed()
			<-time.After(wait) // nothing is judged by it: it chooses the phase
			if res := u.must("session", "stop", r.session); res.err != "aileron: "+r.session+" was asked to end\n" {
				u.t.Errorf("after %v: session stop prints %q", wait, res.err)
			}
			res := r.end()
			if !strings.HasSuffix(res.err, "aileron: "+stopped+"\n") || strings.Count(res.err, stopped) != 1 {
				u.t.Errorf("after %v: the session prints %q, want one line with its cause", wait, res.err)
			}
			if want := code(strings.Contains(res.out, "caught")); res.code != want {
				u.t.Errorf("after %v: it ends with %d, want %d: %q, %q", wait, res.code, want, res.out, res.err)
			}
			r.closed(float64(res.code), stopped)
			r.nothing()
			if show := u.must("session", "show", r.session).out; !strings.Contains(show, "cause    "+stopped+"\n") ||
				!strings.Contains(show, fmt.Sprintf("exit     %d\n", res.code)) {
				u.t.Errorf("after %v: session show prints\n%s", wait, show)
			}
		}
	}
	// A command that catches SIGTERM has an exit code of its own; one that has
	// no handler yet ends by it.
	script := "trap 'echo caught; exit 42' TERM; while :; do sleep 0.1; done"
	code := func(caught bool) int {
		if caught {
			return 42
		}
		return 143
	}
	t.Run("in a box", func(t *testing.T) {
		t.Parallel()
		u := newUser(t, "podman")
		stopsAt(u, code, u.boxArgs(script)...)
	})
	t.Run("in a native one", func(t *testing.T) {
		t.Parallel()
		u := newUser(t, sandbox.Native)
		stopsAt(u, code, u.boxArgs(script)...)
	})
	t.Run("on the host", func(t *testing.T) {
		t.Parallel()
		u := newUser(t, "podman")
		stopsAt(u, code, "run", "--", "sh", "-c", script)
	})
}
