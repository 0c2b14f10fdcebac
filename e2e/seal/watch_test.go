package seal

import (
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
)

// watch sees every packet that anyone in the namespace sends.
type watch struct{ packets *harness.Packets }

func watchAll(t *testing.T) *watch {
	t.Helper()
	packets, err := harness.WatchPackets()
	if err != nil {
		t.Fatal(err)
	}
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
