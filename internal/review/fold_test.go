package review

import (
	"testing"

	"github.com/ALRubinger/aileron/audit"
)

// A log that was tampered with is followed like any other.
func TestAFoldTakesAnyRequestID(t *testing.T) {
	for _, id := range []any{nil, 7.0, []any{"a"}, map[string]any{"a": "b"}} {
		shown := 0
		f := &Fold{Show: func(audit.Row, bool) error { shown++; return nil }}
		for _, event := range []audit.Event{audit.EventProxyStarted, audit.EventProxyProxied} {
			if err := f.Add(audit.Row{Event: event, Fields: map[string]any{"request_id": id}}); err != nil {
				t.Errorf("%v: %v", id, err)
			}
		}
		if shown != 2 {
			t.Errorf("%v: %d rows are shown, want both", id, shown)
		}
	}
}
