package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// refuse makes every insert that condition selects fail, as far as a log can
// tell, until admit.
func refuse(t testing.TB, path, condition string) {
	t.Helper()
	execSQL(t, path, "CREATE TRIGGER refuse BEFORE INSERT ON events WHEN "+condition+
		" BEGIN SELECT RAISE(ABORT, 'refused by the test'); END")
}

func admit(t testing.TB, path string) {
	t.Helper()
	execSQL(t, path, "DROP TRIGGER refuse")
}

func outcomeOf(session string, i int) Row {
	return Row{Event: EventProxyProxied, SessionID: session, Source: SourceConnectTLS, Decision: DecisionProxied, Method: "GET",
		Scheme: "https", Host: fmt.Sprintf("host-%d.example", i), Port: 443, Path: fmt.Sprintf("/items/%d?<&>", i), Status: 200 + i,
		ResponseBytes: int64(i), Fields: map[string]any{"request_id": NewID(), "n": i, "dropped_headers": []string{"a", "b"}}}
}

// spillRows ends a session whose log refuses its last n rows, and returns the
// error of Close.
func spillRows(t testing.TB, path, session string, n int) *LostError {
	t.Helper()
	l := openSession(t, path, session)
	appendNumbered(t, l, session, 0)
	refuse(t, path, "1")
	for i := range n - 1 {
		if err := l.AppendSoon(t.Context(), outcomeOf(session, i)); err != nil {
			t.Fatal(err)
		}
	}
	ended := Row{Event: EventSessionEnded, SessionID: session, Source: SourceLauncher, Fields: map[string]any{"exit_code": 0, "cause": "terminated"}}
	if err := l.AppendSoon(t.Context(), ended); err != nil {
		t.Fatal(err)
	}
	var lost *LostError
	if err := l.Close(); !errors.As(err, &lost) || !errors.Is(err, ErrUnavailable) {
		t.Fatalf("Close = %v, want a LostError", err)
	}
	admit(t, path)
	return lost
}

func spilled(t testing.TB, path string) []Spill {
	t.Helper()
	all, err := Spills(path)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestTheLastRowsOfASessionOutliveALogThatCannotBeWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), database)
	session := NewID()
	lost := spillRows(t, path, session, 4)
	if lost.Kept != 4 || lost.Lost != 0 || !strings.Contains(lost.Error(), "refused by the test") {
		t.Errorf("Close = %+v: %v", lost, lost)
	}
	info, err := os.Stat(lost.Path)
	if err != nil || info.Mode().Perm() != 0o600 || info.Size() != spillSize {
		t.Errorf("the spill file: %v, %v", info, err)
	}
	pending := spilled(t, path)
	if len(pending) != 1 || pending[0].Session != session || len(pending[0].Rows) != 4 || pending[0].Rows[3].Event != EventSessionEnded {
		t.Fatalf("Spills = %+v", pending)
	}
	history(t, filepath.Dir(path), NewID(), 1)
	rows, report := all(t, path)
	if !report.OK || len(rows) != 6 {
		t.Fatalf("%d rows, Verify = %+v", len(rows), report)
	}
	for i, r := range rows[1:5] {
		want := pending[0].Rows[i]
		if r.ID != want.ID || r.Fields[fieldSpilled] != true || !r.TS.Equal(want.TS) || r.Status != want.Status || r.Path != want.Path ||
			r.Fields["clock"] != nil || fmt.Sprint(r.Fields) != fmt.Sprint(want.Fields) {
			t.Errorf("row %d is %+v, want %+v", r.Seq, r, want)
		}
	}
	if _, err := os.Stat(lost.Path); !os.IsNotExist(err) || len(spilled(t, path)) != 0 {
		t.Errorf("the spill file is left: %v", err)
	}
}

// What is killed between the commit of a file's rows and its removal does so
// again.
// A spill file that was removed, as with its whole home, keeps nothing, also of
// what it was given before; one that was moved does.
func TestRowsInASpillFileThatWasRemovedAreCalledLost(t *testing.T) {
	for name, away := range map[string]func(string) error{
		"removed": os.Remove,
		"moved":   func(path string) error { return os.Rename(path, path+".moved") },
	} {
		path, session := filepath.Join(t.TempDir(), database), NewID()
		l := openSession(t, path, session)
		appendNumbered(t, l, session, 0)
		refuse(t, path, "1")
		for i := range 3 {
			if err := l.AppendSoon(t.Context(), outcomeOf(session, i)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := l.Append(t.Context(), outcomeOf(session, 3)); !errors.Is(err, ErrUnavailable) { // the rows are in the file by then
			t.Fatalf("Append = %v", err)
		}
		if got := spilled(t, path); len(got) != 1 || len(got[0].Rows) != 3 {
			t.Fatalf("the spill file has %v", got)
		}
		if err := away(l.spill.path); err != nil {
			t.Fatal(err)
		}
		var lost *LostError
		if err := l.Close(); !errors.As(err, &lost) {
			t.Fatalf("%s: Close = %v, want a LostError", name, err)
		}
		if got := map[string]int{"removed": lost.Lost, "moved": lost.Kept}[name]; got != 3 || lost.Kept+lost.Lost != 3 {
			t.Errorf("%s: %v, want 3 rows of that kind", name, lost)
		}
	}
}

func TestSpilledRowsAreAddedOnce(t *testing.T) {
	for _, committed := range []int{0, 2, 4} {
		dir := t.TempDir()
		path := filepath.Join(dir, database)
		session := NewID()
		lost := spillRows(t, path, session, 4)
		copyFile(t, lost.Path, filepath.Join(dir, "copy"))
		if committed > 0 {
			l := openSession(t, path, "")
			closeLog(t, l)
			execSQL(t, path, "DELETE FROM events WHERE seq > ?", committed+1)
			remove(t, dir, headName, witnessName)
			copyFile(t, filepath.Join(dir, "copy"), lost.Path)
		}
		for range 2 {
			closeLog(t, openSession(t, path, ""))
			copyFile(t, filepath.Join(dir, "copy"), lost.Path)
		}
		rows, _ := all(t, path)
		count := 0
		for _, r := range rows {
			if r.Fields[fieldSpilled] == true {
				count++
			}
		}
		if count != 4 {
			t.Errorf("with %d rows committed before: %d rows of the file are in the log, want 4", committed, count)
		}
	}
}

func TestASpillFileThatASessionDidNotLeaveIsKeptAside(t *testing.T) {
	edit := func(old, with string) func([]byte) []byte {
		return func(raw []byte) []byte { return bytes.Replace(raw, []byte(old), []byte(with), 1) }
	}
	for _, c := range []struct {
		name string
		do   func(raw []byte) []byte
		why  string
	}{
		{"a status", edit(`"status":201`, `"status":404`), "line 3 is not a row"},
		{"an unknown column", edit(`"status":201`, `"st4tus":201`), "line 3 is not a row"},
		{"a row removed", func(raw []byte) []byte {
			lines := bytes.SplitAfter(raw, []byte{'\n'})
			return bytes.Join(append(lines[:1:1], lines[2:]...), nil)
		}, "line 2 is not a row"},
		{"a row doubled", func(raw []byte) []byte {
			lines := bytes.SplitAfter(raw, []byte{'\n'})
			return bytes.Join(append(lines[:2:2], lines[1:]...), nil)
		}, "line 3 is not a row"},
		{"another session", edit(`"session":"0`, `"session":"1`), "not the header"},
		{"another version", edit(`{"aileron_spill":1`, `{"aileron_spill":2`), "not the header"},
		{"no hash", edit(`"after_hash":"`, `"after_hash":"x`), "not the header"},
		{"a zero inside", edit(`"status":201`, "\"status\":\x00201"), "a zero is between"},
		{"garbage", func([]byte) []byte { return []byte("garbage\nand more of it\n") }, "not the header"},
		{"too large", func(raw []byte) []byte { return append(raw, bytes.Repeat([]byte("x\n"), spillSize)...) }, "larger than"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), database)
			lost := spillRows(t, path, NewID(), 4)
			raw, err := os.ReadFile(lost.Path)
			if err != nil {
				t.Fatal(err)
			}
			raw = bytes.TrimRight(raw, "\x00")
			if err := os.WriteFile(lost.Path, c.do(raw), 0o600); err != nil {
				t.Fatal(err)
			}
			if s := spilled(t, path); len(s) != 1 || s[0].Err == nil || len(s[0].Rows) > 0 {
				t.Errorf("Spills = %+v", s)
			}
			for range 2 { // reported once
				closeLog(t, openSession(t, path, ""))
			}
			rows, report := all(t, path)
			if len(rows) != 2 || rows[1].Event != EventBroken || rows[1].Reason != reasonSpillChanged || !strings.Contains(fmt.Sprint(rows[1].Fields["found"]), c.why) {
				t.Fatalf("%d rows, the last is %+v", len(rows), rows[len(rows)-1])
			}
			if report.OK || !strings.Contains(report.Why, "is kept as "+keptAside) {
				t.Errorf("Verify = %+v", report)
			}
			kept, err := os.ReadFile(filepath.Join(filepath.Dir(path), fmt.Sprint(rows[1].Fields["kept_as"])))
			if err != nil || !bytes.Equal(kept, c.do(raw)) {
				t.Errorf("what is kept aside has %d bytes, %v", len(kept), err)
			}
		})
	}
}

// A process that is killed while it writes a row leaves the rows before it.
func TestATornLastLineOfASpillFileIsDropped(t *testing.T) {
	path := filepath.Join(t.TempDir(), database)
	lost := spillRows(t, path, NewID(), 4)
	raw, err := os.ReadFile(lost.Path)
	if err != nil {
		t.Fatal(err)
	}
	raw = bytes.TrimRight(raw, "\x00")
	for cut := range len(raw) {
		want := max(0, bytes.Count(raw[:cut], []byte{'\n'})-1)
		rows, _, err := parseSpill(raw[:cut], spillSession(lost.Path))
		if len(rows) != want || err != nil {
			t.Fatalf("cut at %d: %d rows, %v; want %d", cut, len(rows), err, want)
		}
	}
}

// A full spill file has space for the end of the session, and what it does not
// hold is counted.
func TestASpillFileIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), database)
	const rows = 500
	lost := spillRows(t, path, NewID(), rows)
	if lost.Kept < 50 || lost.Lost < 50 || lost.Kept+lost.Lost != rows || !strings.Contains(lost.Error(), fmt.Sprintf("%d rows are lost", lost.Lost)) {
		t.Errorf("Close = %v", lost)
	}
	s := spilled(t, path)
	if len(s) != 1 || s[0].Err != nil || len(s[0].Rows) != lost.Kept || s[0].Rows[lost.Kept-1].Event != EventSessionEnded {
		t.Errorf("%d spill files", len(s))
	}
	if info, err := os.Stat(lost.Path); err != nil || info.Size() != spillSize {
		t.Errorf("%v, %v", info, err)
	}
}

// outages returns options that report outages, and where they are reported.
func outages(session string) (Options, chan Outage) {
	seen := make(chan Outage, 16)
	return Options{Session: session, OnOutage: func(o Outage) { seen <- o }}, seen
}

// next waits for a value.
func next[T any](t testing.TB, c <-chan T, what string) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(time.Minute):
		t.Fatalf("%s: not within a minute", what)
	}
	return v
}

func TestALogThatCanBeWrittenAgainGetsTheRowsOfItsSession(t *testing.T) {
	path := filepath.Join(t.TempDir(), database)
	session := NewID()
	opts, seen := outages(session)
	l, err := Open(path, opts)
	if err != nil {
		t.Fatal(err)
	}
	appendNumbered(t, l, session, 0)
	refuse(t, path, "1")
	row := outcomeOf(session, 1)
	row.ID = NewID()
	if err := l.AppendSoon(t.Context(), row); err != nil {
		t.Fatal(err)
	}
	if o := next(t, seen, "the outage"); o.Over || o.Err == nil {
		t.Errorf("outage %+v", o)
	}
	for end := time.Now().Add(time.Minute); len(spilled(t, path)) == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the row is not in the spill file")
		}
	}
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
	if names, _ := filepath.Glob(filepath.Join(filepath.Dir(path), spillPrefix+"*")); len(names) > 0 {
		t.Errorf("left: %v", names)
	}
	rows, report := all(t, path)
	if !report.OK || len(rows) != 3 || rows[1].ID != row.ID || rows[1].Fields[fieldSpilled] != true {
		t.Fatalf("%d rows, Verify = %+v", len(rows), report)
	}
	r := rows[2]
	if r.Event != EventSandboxRejected || r.Decision != DecisionRejected || r.Reason != ReasonUnavailable || r.Fields["requests"] != float64(denials) ||
		r.SessionID != session || r.Status != 503 || r.Fields["since"] == nil {
		t.Errorf("the row that counts: %+v", r)
	}
	if len(seen) > 0 {
		t.Errorf("reported besides: %+v", <-seen)
	}
}

// What is deferred is tried again although no other row comes.
func TestAHeldRowIsTriedAgainByItself(t *testing.T) {
	path := filepath.Join(t.TempDir(), database)
	synctest.Test(t, func(t *testing.T) {
		session := NewID()
		opts, seen := outages(session)
		l, err := Open(path, opts)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		refuse(t, path, "1")
		if err := l.AppendSoon(t.Context(), outcomeOf(session, 1)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * groupDelay) // of the bubble's clock, which waits for nothing
		admit(t, path)
		time.Sleep(2 * retryEvery)
		if len(seen) != 2 || (<-seen).Over || !(<-seen).Over {
			t.Fatalf("the row is not tried again")
		}
	})
}

// A disk that is full now and then has one outage, with all that was refused.
func TestAnOutageWithPausesIsOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), database)
	synctest.Test(t, func(t *testing.T) {
		session := NewID()
		opts, seen := outages(session)
		l, err := Open(path, opts)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		denial := outcomeOf(session, 1)
		denial.Event, denial.Decision = EventSandboxRejected, DecisionRejected
		const pauses = 20
		for range pauses {
			refuse(t, path, "1")
			if _, err := l.Append(t.Context(), denial); err == nil {
				t.Fatal("a row that is refused is committed")
			}
			admit(t, path)
			if _, err := l.Append(t.Context(), denial); err != nil {
				t.Fatal(err)
			}
			time.Sleep(retryEvery / 10) // of the bubble's clock
		}
		time.Sleep(3 * retryEvery)
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
	path := filepath.Join(t.TempDir(), database)
	session := NewID()
	l := openSession(t, path, session)
	appendNumbered(t, l, session, 0)
	refuse(t, path, "1")
	for range 3 {
		_, _ = l.Append(t.Context(), Row{Event: EventSandboxRejected, Decision: DecisionRejected, SessionID: session})
	}
	if err := l.AppendSoon(t.Context(), Row{Event: EventSessionEnded, SessionID: session}); err != nil {
		t.Fatal(err)
	}
	var lost *LostError
	if err := l.Close(); !errors.As(err, &lost) || lost.Kept != 2 || lost.Lost != 0 || lost.Refused != 0 {
		t.Fatalf("Close = %v", err)
	}
	admit(t, path)
	closeLog(t, openSession(t, path, ""))
	rows, _ := all(t, path)
	if len(rows) != 3 || rows[1].Fields["requests"] != 3.0 || rows[2].Event != EventSessionEnded {
		t.Errorf("rows %+v", rows)
	}
}

// One row that can never be committed takes no other with it, and is counted.
func TestARowThatCannotBeCommittedTakesNoOtherWithIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), database)
	session := NewID()
	lostRows := 0
	l, err := Open(path, Options{Session: session, OnLost: func(n int) { lostRows += n }})
	if err != nil {
		t.Fatal(err)
	}
	appendNumbered(t, l, session, 0)
	refuse(t, path, "NEW.host = 'host-2.example'")
	for i := range 5 {
		if err := l.AppendSoon(t.Context(), outcomeOf(session, i)); err != nil {
			t.Fatal(err)
		}
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

// What is waited for was committed before a deferred row failed for another reason
// than its own.
func TestACommittedRowIsNotReportedAsFailed(t *testing.T) {
	path := filepath.Join(t.TempDir(), database)
	session := NewID()
	l := openSession(t, path, session)
	appendNumbered(t, l, session, 0)
	refuse(t, path, "NEW.path LIKE '/items/0%' OR NEW.path LIKE '/items/1%'")
	l.mu.Lock()
	for i := range 4 {
		r := outcomeOf(session, i)
		r.ID, r.TS = NewID(), time.Now()
		if i == 2 {
			r.Fields = map[string]any{"n": make(chan int)} // no fault of the database
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
	if err != nil || len(rows) != 3 || rows[1].Fields["requests"] != 3.0 || rows[2].Event != EventProxyStarted {
		t.Fatalf("the log has %+v, %v", rows, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refused != 0 || len(l.deferred) != 2 || l.lost != 2 {
		t.Errorf("%d refusals are still counted, %d rows deferred, %d lost; want 0, 2, 2", l.refused, len(l.deferred), l.lost)
	}
}

// A killed session's reserved file is removed, and one that is locked is not.
func TestOnlyTheSpillFilesOfEndedSessionsAreAdopted(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, database)
	l := openSession(t, path, NewID())
	killed := filepath.Join(dir, spillPrefix+NewID()+"-"+NewID())
	if err := os.WriteFile(killed, make([]byte, spillSize), 0o600); err != nil {
		t.Fatal(err)
	}
	closeLog(t, openSession(t, path, ""))
	if _, err := os.Stat(killed); !os.IsNotExist(err) {
		t.Errorf("the file of a killed session is left: %v", err)
	}
	if _, err := os.Stat(l.spill.path); err != nil || allocated(l.spill.file) < spillSize {
		t.Errorf("the file of a session that runs: %v, %d bytes", err, allocated(l.spill.file))
	}
	closeLog(t, l)
	if all, _ := os.ReadDir(dir); len(all) > 3+len(sidecars) {
		t.Errorf("left: %v", all)
	}
}

// Every member of a group is told how the commit of its own row ended.
func TestMembersOfAGroupAreToldWhatBecameOfTheirRows(t *testing.T) {
	path := filepath.Join(t.TempDir(), database)
	l := openTest(t, path)
	appendTest(t, l, EventSessionStarted)
	for _, broken := range []string{"1", "NEW.host = 'host-17.example'", "0"} {
		refuse(t, path, broken)
		const members = 64
		told := groupOf(t, l, members)
		admit(t, path)
		rows, err := l.List(t.Context(), Filter{Event: EventProxyProxied})
		if err != nil {
			t.Fatal(err)
		}
		stored := map[string]bool{}
		for _, r := range rows {
			stored[r.ID] = true
		}
		committed := 0
		for id, err := range told {
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

// groupOf appends n rows that are committed as one group, and returns what
// Append returned for each.
func groupOf(t testing.TB, l *Log, n int) map[string]error {
	t.Helper()
	type answer struct {
		id  string
		err error
	}
	l.mu.Lock()
	l.leading = true // as if a commit were under way
	l.mu.Unlock()
	answers := make(chan answer, n)
	for i := range n {
		go func() {
			r := outcomeOf("s", i)
			r.ID = NewID()
			_, err := l.Append(context.Background(), r)
			answers <- answer{r.ID, err}
		}()
	}
	for waiting := 0; waiting < n; time.Sleep(time.Millisecond) {
		l.mu.Lock()
		waiting = len(l.waiting)
		l.mu.Unlock()
	}
	l.mu.Lock()
	leader := l.waiting[0]
	l.waiting = l.waiting[1:]
	l.mu.Unlock()
	leader.result <- outcome{lead: true}
	told := map[string]error{}
	for range n {
		a := next(t, answers, "Append returns")
		told[a.id] = a.err
	}
	return told
}
