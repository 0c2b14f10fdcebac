package seal

import (
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
)

// watch sees every packet that anyone in the namespace sends.
type watch struct{ packets *harness.Packets }

func watchAll(t *testing.T) *watch {
	t.Helper()
	packets := must.Get(harness.WatchPackets())(t)
	t.Cleanup(func() { _ = packets.Close() })
	return &watch{packets}
}

// take returns where packets went since the last time.
func (w *watch) take(t *testing.T) map[string]int {
	t.Helper()
	packets, err := w.packets.Take()
	if err != nil {
		t.Fatalf("watch the network: %v", err)
	}
	sent := map[string]int{}
	for _, p := range packets {
		sent[p.String()]++
	}
	return sent
}
