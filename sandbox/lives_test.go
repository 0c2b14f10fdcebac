package sandbox

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/procid"
	"github.com/ALRubinger/aileron/sandbox/engine"
)

// The next session records the end of a killed one, whose lock it holds meanwhile, beside the removal of its
// containers.
func TestASessionWhoseEndIsRecordedDoesNotLive(t *testing.T) {
	other := exec.Command("cat")
	in := must.Get(other.StdinPipe())(t)
	must.Do(t, other.Start())
	ended := must.Get(procid.Of(other.Process.Pid))(t)
	_ = in.Close()
	_ = other.Wait()
	self, now := must.Get(procid.Of(os.Getpid()))(t), time.Now()
	for name, c := range map[string]struct {
		owner string
		held  int // how often the lock of the session is found held
		until time.Time
		want  bool
	}{
		"its process lives":                    {self, 0, now, true},
		"its process has ended":                {ended, 0, now, false},
		"its end is recorded":                  {ended, 3, now.Add(time.Hour), false},
		"its lock is held for too long":        {ended, 1 << 30, now, true},
		"no process is known, and it is alive": {"", 1 << 30, now, true},
	} {
		asked := 0
		alive := func(session string) bool { asked++; return session == "one" && asked <= c.held }
		labels := map[string]string{labelOwner: c.owner, labelSession: "one"}
		if got := lives(engine.Listed{Labels: labels}, alive, c.until); got != c.want {
			t.Errorf("%s: it lives: %v, want %v", name, got, c.want)
		}
	}
}
