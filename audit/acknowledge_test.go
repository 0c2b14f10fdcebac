package audit

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/must"
)

// A row that can never be committed takes no other with it, and is counted.
func TestARowThatCannotBeCommittedTakesNoOtherWithIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), databaseName)
	session := NewID()
	lostRows := 0
	l := must.Get(Open(path, Options{Session: session, OnLost: func(n int) { lostRows += n }}))(t)
	appendNumbered(t, l, session, 0)
	l.flush(t.Context())
	refuse(t, path, "NEW.host = 'host-2.example'")
	for i := range 5 {
		must.Do(t, l.AppendSoon(t.Context(), outcomeOf(session, i)))
	}
	if _, err := l.Append(t.Context(), outcomeOf(session, 9)); err != nil {
		t.Errorf("Append = %v", err)
	}
	var lost *LostError
	if err := l.Close(); !errors.As(err, &lost) || lost.Lost != 1 || lost.Kept != 0 || lostRows != 1 {
		t.Errorf("Close = %v, %d rows were reported as lost", err, lostRows)
	}
	if rows, report := all(t, path); len(rows) != 6 || !report.OK {
		t.Errorf("%d rows, Verify = %+v", len(rows), report)
	}
}

// A row that is waited for was committed before a deferred row failed for a reason of its own.
func TestACommittedRowIsNotReportedAsFailed(t *testing.T) {
	path := filepath.Join(t.TempDir(), databaseName)
	session := NewID()
	l := openSession(t, path, session)
	appendNumbered(t, l, session, 0)
	l.flush(t.Context())
	refuse(t, path, "NEW.path LIKE '/items/0%' OR NEW.path LIKE '/items/1%'")
	l.mu.Lock()
	for i := range 4 {
		r := outcomeOf(session, i)
		r.ID, r.TS = NewID(), time.Now()
		if i == 2 {
			r.Fields = map[string]any{"n": make(chan int)} // the database is not the cause
		}
		l.deferred = append(l.deferred, &r)
	}
	l.refused = 3
	l.mu.Unlock()
	intent := outcomeOf(session, 9)
	intent.Event, intent.Decision = EventProxyStarted, ""
	if _, err := l.Append(t.Context(), intent); err != nil {
		t.Errorf("Append = %v, want nil", err)
	}
	rows, err := l.List(t.Context(), Filter{Session: session})
	if err != nil || len(rows) != 3 || rows[1].Event != EventProxyStarted || rows[2].Fields["requests"] != 3.0 {
		t.Fatalf("the log has %+v, %v", rows, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refused != 0 || len(l.deferred) != 2 || l.lost != 2 {
		t.Errorf("%d refusals are still counted, %d rows deferred, %d lost; want 0, 2, 2", l.refused, len(l.deferred), l.lost)
	}
}

// Every member of a group gets the result of the commit of its own row.
func TestEachMemberOfAGroupGetsTheResultOfItsOwnRow(t *testing.T) {
	path := filepath.Join(t.TempDir(), databaseName)
	l := openTest(t, path)
	appendTest(t, l, EventSessionStarted)
	for _, broken := range []string{"1", "NEW.host = 'host-17.example'", "0"} {
		refuse(t, path, broken)
		const members = 64
		results := groupOf(t, l, members)
		admit(t, path)
		rows := must.Get(l.List(t.Context(), Filter{Event: EventProxyProxied}))(t)
		stored := map[string]bool{}
		for _, r := range rows {
			stored[r.ID] = true
		}
		committed := 0
		for id, err := range results {
			if err == nil {
				committed++
			}
			if stored[id] != (err == nil) {
				t.Fatalf("with %s refused: Append = %v, and the row is in the log: %v", broken, err, stored[id])
			}
		}
		if (broken == "0") != (committed == members) {
			t.Errorf("with %s refused: %d of %d are committed", broken, committed, members)
		}
	}
}

// groupOf appends n rows that are committed as one group, and returns what Append returned for each, by id.
func groupOf(t testing.TB, l *Log, n int) map[string]error {
	t.Helper()
	type result struct {
		id  string
		err error
	}
	l.mu.Lock()
	l.leading = true // as if a commit were under way
	l.mu.Unlock()
	ended := make(chan result, n)
	for i := range n {
		go func() {
			r := outcomeOf("s", i)
			r.ID = NewID()
			_, err := l.Append(context.Background(), r)
			ended <- result{r.ID, err}
		}()
	}
	poll(t, "the rows do not wait for the leader", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.waiting) == n
	})
	l.mu.Lock()
	leader := l.waiting[0]
	l.waiting = l.waiting[1:]
	l.mu.Unlock()
	leader.result <- outcome{lead: true}
	results := map[string]error{}
	for range n {
		r := next(t, ended, "Append returns")
		results[r.id] = r.err
	}
	return results
}
