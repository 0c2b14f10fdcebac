package audit

import (
	"errors"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ALRubinger/aileron/audit/internal/chain"
	"github.com/ALRubinger/aileron/audit/internal/journal"
	"github.com/ALRubinger/aileron/e2e/must"
)

// outages returns options that report outages, and where they are reported.
func outages(session string) (Options, chan Outage) {
	seen := make(chan Outage, 64) // more than a test expects: a report must not block the log
	return Options{Session: session, OnOutage: func(o Outage) { seen <- o }}, seen
}

func TestALogThatCanBeWrittenAgainGetsTheRowsOfItsSession(t *testing.T) {
	impatient(t, &settleTimeout)
	path := filepath.Join(t.TempDir(), databaseName)
	session := NewID()
	opts, seen := outages(session)
	l := must.Get(Open(path, opts))(t)
	appendNumbered(t, l, session, 0)
	l.flush(t.Context())
	refuse(t, path, "1")
	row := outcomeOf(session, 1)
	row.ID = NewID()
	must.Do(t, l.AppendSoon(t.Context(), row))
	if o := next(t, seen, "the outage"); o.Over || o.Err == nil {
		t.Errorf("outage %+v", o)
	}
	poll(t, "the row is not in the journal", func() bool { return len(spilled(t, path)) > 0 })
	const denials = 5
	for i := range denials {
		r := outcomeOf(session, i)
		r.Decision, r.Event = DecisionRejected, EventProxyRejected
		intent := outcomeOf(session, i)
		intent.Event, intent.Decision = EventProxyStarted, ""
		for _, r := range []Row{intent, r} {
			if _, err := l.Append(t.Context(), r); !errors.Is(err, ErrUnavailable) {
				t.Fatalf("Append = %v", err)
			}
		}
	}
	admit(t, path)
	o := next(t, seen, "the end of the outage")
	if !o.Over || o.Refused != denials || o.Until.Before(o.Since) {
		t.Errorf("the end of the outage: %+v", o)
	}
	closeLog(t, l)
	if names, _ := filepath.Glob(filepath.Join(filepath.Dir(path), journal.Prefix+"*")); len(names) > 0 {
		t.Errorf("left: %v", names)
	}
	rows, report := all(t, path)
	if !report.OK || len(rows) != 3 || rows[1].ID != row.ID || rows[1].Fields[chain.FieldSpilled] != true {
		t.Fatalf("%d rows, Verify = %+v", len(rows), report)
	}
	r := rows[2]
	if r.Event != EventSandboxRejected || r.Decision != DecisionRejected || r.Reason != ReasonUnavailable ||
		r.Fields["requests"] != float64(denials) || r.SessionID != session || r.Status != 503 || r.Fields["since"] == nil {
		t.Errorf("the row that counts: %+v", r)
	}
	if len(seen) > 0 {
		t.Errorf("reported besides: %+v", <-seen)
	}
}

// A deferred row is retried although no other row is appended.
func TestADeferredRowIsRetriedByItself(t *testing.T) {
	path := filepath.Join(t.TempDir(), databaseName)
	synctest.Test(t, func(t *testing.T) {
		session := NewID()
		opts, seen := outages(session)
		l := must.Get(Open(path, opts))(t)
		defer l.Close()
		refuse(t, path, "1")
		must.Do(t, l.AppendSoon(t.Context(), outcomeOf(session, 1)))
		<-time.After(2 * journal.FoldDelay) // on the clock of the bubble
		admit(t, path)
		<-time.After(2 * retryEvery)
		if len(seen) != 2 || (<-seen).Over || !(<-seen).Over {
			t.Fatalf("the row is not tried again")
		}
	})
}

// A disk that is full intermittently has one outage, with all refused requests.
func TestAnOutageWithPausesIsOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), databaseName)
	synctest.Test(t, func(t *testing.T) {
		session := NewID()
		opts, seen := outages(session)
		l := must.Get(Open(path, opts))(t)
		defer l.Close()
		denial := outcomeOf(session, 1)
		denial.Event, denial.Decision = EventSandboxRejected, DecisionRejected
		const pauses = 20
		for range pauses {
			refuse(t, path, "1")
			must.Do(t, l.AppendSoon(t.Context(), outcomeOf(session, 2)))
			l.flush(t.Context())
			if _, err := l.Append(t.Context(), denial); err == nil {
				t.Fatal("a denial is accepted while rows cannot be committed")
			}
			admit(t, path)
			must.Get(l.Append(t.Context(), denial))(t)
			<-time.After(retryEvery / 10) // on the clock of the bubble
		}
		<-time.After(3 * retryEvery)
		if len(seen) != 2 {
			t.Fatalf("%d reports of %d outages, want one's start and its end", len(seen), pauses)
		}
		if first, last := <-seen, <-seen; first.Over || !last.Over || last.Refused != pauses {
			t.Errorf("reported: %+v, %+v", first, last)
		}
	})
}

// A count that cannot be committed before the end is kept with the last rows.
func TestTheNumberOfRefusedRequestsOutlivesTheSession(t *testing.T) {
	path := filepath.Join(t.TempDir(), databaseName)
	session := NewID()
	l := openSession(t, path, session)
	appendNumbered(t, l, session, 0)
	l.flush(t.Context())
	refuse(t, path, "1")
	must.Do(t, l.AppendSoon(t.Context(), outcomeOf(session, 1)))
	l.flush(t.Context())
	for range 3 {
		_, _ = l.Append(t.Context(), Row{Event: EventSandboxRejected, Decision: DecisionRejected, SessionID: session})
	}
	must.Do(t, l.AppendSoon(t.Context(), Row{Event: EventSessionEnded, SessionID: session}))
	var lost *LostError
	if err := l.Close(); !errors.As(err, &lost) || lost.Kept != 3 || lost.Lost != 0 || lost.Refused != 0 {
		t.Fatalf("Close = %v", err)
	}
	admit(t, path)
	closeLog(t, openSession(t, path, ""))
	rows, _ := all(t, path)
	if len(rows) != 4 || rows[2].Fields["requests"] != 3.0 || rows[3].Event != EventSessionEnded {
		t.Errorf("rows %+v", rows)
	}
}
