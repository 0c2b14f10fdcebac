package audit

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
)

// The start of a session is found by the time in its id, and also if a clock was set between the two, or if the id has
// no time.
func TestSessionStartIsFoundWhateverTheClock(t *testing.T) {
	l := openTest(t, filepath.Join(t.TempDir(), "audit.db"))
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	late := ulid.MustNew(ulid.Timestamp(now.Add(24*time.Hour)), ulid.DefaultEntropy()).String()
	near := ulid.MustNew(ulid.Timestamp(now), ulid.DefaultEntropy()).String()
	for i, session := range []string{"named", near, late} {
		for _, event := range []Event{EventProxyProxied, EventSessionStarted, EventProxyProxied} {
			_, err := l.Append(t.Context(), Row{Event: event, SessionID: session, TS: now.Add(time.Duration(i) * time.Second)})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, session := range []string{"named", near, late} {
		if row, err := l.SessionStart(t.Context(), session); err != nil || row.SessionID != session ||
			row.Event != EventSessionStarted {
			t.Errorf("SessionStart(%s) = %+v, %v", session, row, err)
		}
	}
	if row, err := l.SessionStart(t.Context(), NewID()); !errors.Is(err, ErrNotFound) {
		t.Errorf("SessionStart of none = %+v, %v", row, err)
	}
}
