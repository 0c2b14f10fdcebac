package audit

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/ALRubinger/aileron/audit/internal/chain"
	"github.com/ALRubinger/aileron/e2e/must"
)

// killedSession writes the rows of a session that was killed with every third of its n requests under way, among rows
// of another, running session.
func killedSession(t testing.TB, l *Log, session string, n int) (open []Row) {
	t.Helper()
	must.Get(l.Append(t.Context(), Row{Event: EventSessionStarted, SessionID: session}))(t)
	for i := range n {
		r := outcomeOf(session, i)
		r.Event, r.Decision, r.Status, r.ResponseBytes, r.Binding = EventProxyStarted, "", 0, 0, "api_key/acme/me"
		intent := must.Get(l.Append(t.Context(), r))(t)
		other := outcomeOf("running", i)
		other.Event = EventProxyStarted
		must.Get(l.Append(t.Context(), other))(t)
		if i%3 == 0 {
			open = append(open, intent)
			continue
		}
		r = outcomeOf(session, i)
		r.Fields = map[string]any{"request_id": intent.Fields["request_id"]}
		must.Do(t, l.AppendSoon(t.Context(), r))
	}
	l.flush(t.Context())
	return open
}

// unknown returns the rows of EventProxyUnknown.
func unknown(t testing.TB, path string) (found []Row) {
	t.Helper()
	rows, _ := all(t, path)
	for _, r := range rows {
		if r.Event == EventProxyUnknown {
			found = append(found, r)
		}
	}
	return found
}

func TestTheRequestsOfAKilledSessionGetAnUnknownOutcome(t *testing.T) {
	const requests = 60
	for _, most := range []int{chain.MaxOpen, 7, 1} { // however many fit into memory
		path := filepath.Join(t.TempDir(), databaseName)
		l := openSession(t, path, NewID())
		session := NewID()
		open := killedSession(t, l, session, requests)
		if n, err := l.OpenIntents(t.Context(), session); n != len(open) || err != nil {
			t.Errorf("OpenIntents = %d, %v; want %d", n, err, len(open))
		}
		n, ended, err := l.closeKilled(t.Context(), session, most)
		if n != len(open) || ended || err != nil {
			t.Errorf("CloseKilled = %d, %v, %v; want %d", n, ended, err, len(open))
		}
		if n, _, err := l.closeKilled(t.Context(), session, most); n != 0 || err != nil {
			t.Errorf("the second CloseKilled = %d, %v", n, err)
		}
		rows := unknown(t, path)
		if len(rows) != len(open) {
			t.Fatalf("%d rows, want %d", len(rows), len(open))
		}
		for i, r := range rows {
			intent := open[i]
			if r.SessionID != session || r.Fields["request_id"] != intent.Fields["request_id"] ||
				r.Fields["intent_id"] != intent.ID || r.Host != intent.Host || r.Binding != intent.Binding ||
				r.Reason != ReasonSessionKilled || r.Decision != "" || r.Status != 0 || r.Fields["sent"] == nil ||
				fmt.Sprint(r.Fields["not_known"]) != fmt.Sprint(notKnown()) {
				t.Errorf("row %+v for the intent %+v", r, intent)
			}
		}
		report, err := l.Verify(t.Context())
		if err != nil || !report.OK || report.Unknown != int64(len(open)) || report.Open != requests {
			t.Errorf("Verify = %+v, %v; want %d unknown outcomes, and %d intents of the other session",
				report, err, len(open), requests)
		}
		closeLog(t, l)
	}
}

// A sweep that was interrupted is repeated, and a session that has its EventSessionEnded gets no second one.
func TestAnInterruptedSweepIsResumed(t *testing.T) {
	path := filepath.Join(t.TempDir(), databaseName)
	l := openSession(t, path, NewID())
	session := NewID()
	open := killedSession(t, l, session, 30)
	refuse(t, path, "NEW.event = '"+string(EventProxyUnknown)+"' AND NEW.host = '"+open[5].Host+"'")
	if _, _, err := l.CloseKilled(t.Context(), session); err == nil {
		t.Fatal("a sweep that cannot be committed succeeds")
	}
	admit(t, path)
	var seqs []int64
	for _, i := range []int{0, 4} {
		r := must.Get(l.Get(t.Context(), open[i].ID))(t)
		seqs = append(seqs, r.Seq)
	}
	must.Do(t, l.addUnknown(t.Context(), seqs))
	must.Get(l.Append(t.Context(), Row{Event: EventSessionEnded, SessionID: session}))(t)
	n, ended, err := l.CloseKilled(t.Context(), session)
	if n != len(open)-2 || !ended || err != nil || len(unknown(t, path)) != len(open) {
		t.Errorf("CloseKilled = %d, %v, %v with %d rows; want %d", n, ended, err, len(unknown(t, path)), len(open)-2)
	}
	closeLog(t, l)
}

// A clock that was set back while the session ran hides none of its intents.
func TestASweepFindsTheRowsOfASessionWhoseClockWasSet(t *testing.T) {
	path := filepath.Join(t.TempDir(), databaseName)
	l := openSession(t, path, NewID())
	session := NewID()
	open := killedSession(t, l, session, 9)
	execSQL(t, path, "UPDATE events SET ts = '2001-01-01T00:00:00.000000000Z' WHERE seq < 8") // verify would find it
	if n, _, err := l.CloseKilled(t.Context(), session); n != len(open) || err != nil {
		t.Errorf("CloseKilled = %d, %v; want %d", n, err, len(open))
	}
	if n, ended, err := l.CloseKilled(t.Context(), NewID()); n != 0 || ended || err != nil {
		t.Errorf("CloseKilled of a session without rows = %d, %v, %v", n, ended, err)
	}
	closeLog(t, l)
}
