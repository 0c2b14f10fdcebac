package audit

import (
	"path/filepath"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

// A session may go on for months: a list with a limit reads no more of it for what is under way than a bound, and
// names the row from which on it did; one without a limit finds all.
func TestWhatIsUnderWayIsFoundWithinABound(t *testing.T) {
	l := must.Get(Open(filepath.Join(t.TempDir(), "audit.db"), Options{}))(t)
	defer closeLog(t, l)
	session := NewID()
	intent := func(id string) *Row { return intentOf(session, id) }
	group := []*Row{{Event: EventSessionStarted, SessionID: session, Source: SourceLauncher}, intent("old")}
	for range maxGoing / 2 {
		id := NewID()
		done := intent(id)
		done.Event, done.Decision = EventProxyProxied, DecisionProxied
		group = append(group, intent(id), done)
	}
	group = append(group, intent("new"))
	for _, r := range group {
		r.ID = NewID()
	}
	l.mustWrite(t, group)
	first := int64(len(group) - maxGoing + 1)
	for limit, want := range map[int]string{10: "new ", 0: "old new "} {
		u := must.Get(l.Unfinished(t.Context(), Filter{Limit: limit, Newest: limit > 0}))(t)
		since := first
		if limit == 0 {
			since = 0
		}
		if got := requestIDs(u); got != want || u.Since != since {
			t.Errorf("limit %d: %q since %d, want %q since %d", limit, got, u.Since, want, since)
		}
	}
}

// With a binding, all of its requests without an outcome are found, those of ended sessions too.
func TestWhatHasNoOutcomeIsFoundByItsBinding(t *testing.T) {
	l := must.Get(Open(filepath.Join(t.TempDir(), "audit.db"), Options{}))(t)
	defer closeLog(t, l)
	session := NewID()
	group := []*Row{{Event: EventSessionStarted, SessionID: session, Source: SourceLauncher}, intentOf(session, "other"),
		intentOf(session, "first"), intentOf(session, "second"),
		{Event: EventSessionEnded, SessionID: session, Source: SourceLauncher}}
	group[2].Binding, group[3].Binding = "api_key/tracker/work", "api_key/tracker/work"
	for _, r := range group {
		r.ID = NewID()
	}
	l.mustWrite(t, group)
	for binding, want := range map[string]string{"api_key/tracker/work": "first second ", "api_key/tracker/home": ""} {
		u := must.Get(l.Unfinished(t.Context(), Filter{Limit: 10, Newest: true, Binding: binding}))(t)
		if got := requestIDs(u); got != want {
			t.Errorf("%s: %q, want %q", binding, got, want)
		}
	}
}

func intentOf(session, id string) *Row {
	return &Row{Event: EventProxyStarted, SessionID: session, Source: SourceConnectTLS,
		Fields: map[string]any{"request_id": id}}
}

func requestIDs(u Unfinished) (ids string) {
	for _, r := range u.Rows {
		ids += r.Fields["request_id"].(string) + " "
	}
	return ids
}
