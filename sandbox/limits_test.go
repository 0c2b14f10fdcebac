package sandbox

import (
	"testing"

	"github.com/ALRubinger/aileron/sandbox/engine"
)

func TestASandboxLeavesAShareOfTheMachineFree(t *testing.T) {
	limits := func(memory int64, cpus float64) engine.Limits { return engine.Limits{Memory: memory, CPUs: cpus} }
	for _, c := range []struct {
		machine, want engine.Limits
		text          string
	}{
		{limits(16<<30, 8), limits(12<<30, 7.75), "12 GiB of memory, without swap, and 7.75 CPUs"},
		{limits(1<<30, 1), limits(768<<20, 0.75), "768 MiB of memory, without swap, and 0.75 CPUs"},
		{limits(25276502016, 2), limits(18957376512, 1.75), "17.7 GiB of memory, without swap, and 1.75 CPUs"},
	} {
		got := Share(c.machine)
		if got != c.want || got.String() != c.text {
			t.Errorf("Share of %v = %v (%s), want %v (%s)", c.machine, got, got, c.want, c.text)
		}
	}
	if got := limits(64<<30, 2).Within(limits(16<<30, 8)); got != limits(0, 2) {
		t.Errorf("Within = %v, want no limit of memory: the machine has less", got)
	}
	if got := (engine.Limits{}).String(); got != "all memory and all CPUs" {
		t.Errorf("no limits are described as %q", got)
	}
}
