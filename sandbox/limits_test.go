package sandbox

import (
	"testing"

	"github.com/ALRubinger/aileron/sandbox/engine"
)

func TestABoxLeavesAShareOfTheMachineFree(t *testing.T) {
	for _, c := range []struct {
		machine, want engine.Limits
		text          string
	}{
		{engine.Limits{Memory: 16 << 30, CPUs: 8}, engine.Limits{Memory: 12 << 30, CPUs: 7.75}, "12 GiB of memory, without swap, and 7.75 CPUs"},
		{engine.Limits{Memory: 1 << 30, CPUs: 1}, engine.Limits{Memory: 768 << 20, CPUs: 0.75}, "768 MiB of memory, without swap, and 0.75 CPUs"},
		{engine.Limits{Memory: 25276502016, CPUs: 2}, engine.Limits{Memory: 18957376512, CPUs: 1.75}, "17.7 GiB of memory, without swap, and 1.75 CPUs"},
	} {
		got := Share(c.machine)
		if got != c.want || got.String() != c.text {
			t.Errorf("Share of %v = %v (%s), want %v (%s)", c.machine, got, got, c.want, c.text)
		}
	}
	if got := (engine.Limits{Memory: 64 << 30, CPUs: 2}).Within(engine.Limits{Memory: 16 << 30, CPUs: 8}); got != (engine.Limits{Memory: 0, CPUs: 2}) {
		t.Errorf("Within = %v, want no limit of memory: the machine has less", got)
	}
	if got := (engine.Limits{}).String(); got != "all memory and all CPUs" {
		t.Errorf("no limits are described as %q", got)
	}
}
