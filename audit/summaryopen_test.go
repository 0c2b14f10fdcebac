package audit

import (
	"path/filepath"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

// The requests without an outcome of every session are counted, whichever goroutine looks at it.
func TestASummaryCountsTheOpenRequestsOfEverySession(t *testing.T) {
	l := must.Get(Open(filepath.Join(t.TempDir(), databaseName), Options{}))(t)
	defer l.Close()
	const sessions = 7
	for range sessions {
		session := NewID()
		for _, event := range []Event{EventProxyStarted, EventProxyProxied} {
			request := map[string]any{"request_id": session + string(event)} // the outcome is of another
			must.Get(l.Append(t.Context(), Row{Event: event, SessionID: session, Fields: request}))(t)
		}
	}
	if got := must.Get(l.Summarize(t.Context(), Filter{}))(t); got.Open != sessions {
		t.Errorf("%d requests are open, want %d", got.Open, sessions)
	}
}
