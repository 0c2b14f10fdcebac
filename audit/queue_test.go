package audit

import (
	"slices"
	"testing"
)

// A caller that gives up before a leader has taken its row takes only that row with it, wherever it stands.
func TestARowIsWithdrawnFromTheQueue(t *testing.T) {
	first, second, third, taken := &pending{}, &pending{}, &pending{}, &pending{}
	for _, gone := range []*pending{first, second, third} {
		w := &writer{waiting: []*pending{first, second, third}}
		if w.withdraw(taken) || len(w.waiting) != 3 {
			t.Error("a row that a leader has taken is withdrawn")
		}
		if !w.withdraw(gone) || len(w.waiting) != 2 || slices.Contains(w.waiting, gone) || w.withdraw(gone) {
			t.Error("the queue is not what it was without the row")
		}
	}
}
