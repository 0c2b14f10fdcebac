package follow

import (
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit/internal/chain"
)

// The number of remembered rows is bounded. A row that was dropped is distinguished from a new one by its time.
func TestFollowRemembersABoundedNumberOfRows(t *testing.T) {
	s := seenRows{hashes: map[string]struct{}{}}
	start := time.Unix(1_800_000_000, 0)
	row := func(i int) seenRow { return seenRow{hash: time.Duration(i).String(), ts: start.Add(time.Duration(i))} }
	const n = 2*maxSeen + 7
	for i := range n {
		s.add(row(i))
	}
	if len(s.hashes) != maxSeen || len(s.order) != maxSeen {
		t.Fatalf("it remembers %d rows, want %d", len(s.hashes), maxSeen)
	}
	for _, i := range []int{0, n - maxSeen - 1, n - maxSeen, n - 1} {
		known := s.has(row(i).hash) || s.forgot(chain.Row{TS: row(i).ts})
		if s.has(row(i).hash) != (i >= n-maxSeen) || !known {
			t.Errorf("row %d: remembered: %v, known: %v", i, s.has(row(i).hash), known)
		}
	}
	if s.forgot(chain.Row{TS: row(n).ts}) {
		t.Error("a new row is taken for one that was forgotten")
	}
}
