package audit

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit/internal/table"
	"github.com/ALRubinger/aileron/e2e/must"
)

// After a database has twice accepted no row, no further one is tried before the pause is over, however many requests
// ask for it. All are tried on one connection, and that is reported once.
func TestRowsThatNoDatabaseAcceptsAreNotTriedAllTheTime(t *testing.T) {
	path, session := filepath.Join(t.TempDir(), databaseName), NewID()
	outages := make(chan Outage, 16)
	l := must.Get(Open(path, Options{Session: session, OnOutage: func(o Outage) { outages <- o }}))(t)
	appendNumbered(t, l, session, 0)
	l.flush(t.Context())
	refuse(t, path, "1")
	for i := range 20 {
		must.Do(t, l.AppendSoon(t.Context(), outcomeOf(session, i)))
	}
	var before *table.Writer
	whileIdle(t, l, func() { before = l.tx })
	l.flush(t.Context())
	whileIdle(t, l, func() { l.pace.next = time.Time{} })
	l.flush(t.Context())
	var held pace
	whileIdle(t, l, func() {
		if held = l.pace; held.err == nil || l.tx != before || before == nil {
			t.Errorf("after the attempt, the pace is %+v; the connection is the same: %v", held, l.tx == before)
		}
		l.pace.next = time.Now().Add(time.Hour)
	})
	admit(t, path)
	intent := outcomeOf(session, 9)
	intent.Event, intent.Decision = EventProxyStarted, ""
	for range 50 {
		if _, err := l.Append(t.Context(), intent); !errors.Is(err, held.err) {
			t.Fatalf("within the pause Append = %v, want %v", err, held.err)
		}
	}
	if n := l.journal.KeptRows(); n != 20 {
		t.Errorf("within the pause %d rows are left in the journal, want 20: they were tried", n)
	}
	whileIdle(t, l, func() { l.pace.next = time.Time{} })
	if _, err := l.Append(t.Context(), intent); err != nil {
		t.Errorf("behind the pause Append = %v", err)
	}
	closeLog(t, l)
	first, last := next(t, outages, "the outage is not reported"), next(t, outages, "its end is not reported")
	if first.Over || !last.Over || len(outages) > 0 {
		t.Errorf("the reports are %+v, %+v and %d more", first, last, len(outages))
	}
	if rows, report := all(t, path); len(rows) != 22 || !report.OK {
		t.Errorf("%d rows, want 22; Verify = %+v", len(rows), report)
	}
}

// The end of a session does not wait for the pause: its rows are tried once more.
func TestTheEndOfASessionDoesNotWaitForThePause(t *testing.T) {
	path, session := filepath.Join(t.TempDir(), databaseName), NewID()
	l := openSession(t, path, session)
	must.Do(t, l.AppendSoon(t.Context(), outcomeOf(session, 0)))
	whileIdle(t, l, func() { l.pace = pace{next: time.Now().Add(time.Hour), err: table.ErrDamaged} })
	closeLog(t, l)
	if rows, _ := all(t, path); len(rows) != 1 {
		t.Errorf("%d rows, want 1", len(rows))
	}
}

// The pause doubles while nothing is accepted, up to a bound.
func TestThePauseDoublesUpToItsBound(t *testing.T) {
	var p pace
	if !p.due() || p.refusal() != nil {
		t.Error("the first attempt is not due")
	}
	for _, want := range []time.Duration{retryEvery, 2 * retryEvery, 4 * retryEvery, maxPause, maxPause} {
		p.tried(false)
		p.hold(table.ErrDamaged)
		if p.pause != want || p.due() || (p.refusal() != nil) != (want > retryEvery) {
			t.Errorf("the pause is %v, due: %v, %v; want %v", p.pause, p.due(), p.refusal(), want)
		}
	}
	if p.tried(true); p.pause != retryEvery {
		t.Errorf("after rows were accepted, the pause is %v", p.pause)
	}
}
