package proxy

import (
	"testing"
)

// mostAllocations is how many allocations an exchange may take: one credentialed
// GET on a warm tunnel, its two audit rows included. It takes about 50, a third of
// them in the log's own goroutine, where a busy machine makes smaller groups.
const mostAllocations = 70

func TestAnExchangeAllocatesLittle(t *testing.T) {
	if poisonAll {
		t.Skip("the race detector allocates too, and nothing is recycled")
	}
	w := newWorldWith(t, false, scripted(t, "http/1.1", plainHeads.serve), nil)
	w.plane.exchanges.poison = false
	conn := w.tunnel("api.good.example")
	defer conn.Close()
	must(t, plainHeads.exchange(conn, 50))
	n := testing.AllocsPerRun(50, func() { must(t, plainHeads.exchange(conn, 10)) }) / 10
	if n > mostAllocations {
		t.Errorf("%.1f allocations, want %d at most", n, mostAllocations)
	}
	t.Logf("%.1f allocations", n)
}
