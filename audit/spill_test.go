package audit

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// refuse makes every insert that the condition selects fail until admit is called.
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
	return Row{
		Event: EventProxyProxied, SessionID: session, Source: SourceConnectTLS, Decision: DecisionProxied,
		Method: "GET", Scheme: "https", Host: fmt.Sprintf("host-%d.example", i), Port: 443,
		Path: fmt.Sprintf("/items/%d?<&>", i), Status: 200 + i, ResponseBytes: int64(i),
		Fields: map[string]any{"request_id": NewID(), "n": i, "dropped_headers": []string{"a", "b"}},
	}
}

// spillRows ends a session whose log refuses its last n rows, and returns the error of Close.
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
	ended := Row{
		Event: EventSessionEnded, SessionID: session, Source: SourceLauncher,
		Fields: map[string]any{"exit_code": 0, "cause": "terminated"},
	}
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
	if len(pending) != 1 || pending[0].Session != session || len(pending[0].Rows) != 4 ||
		pending[0].Rows[3].Event != EventSessionEnded {
		t.Fatalf("Spills = %+v", pending)
	}
	history(t, filepath.Dir(path), NewID(), 1)
	rows, report := all(t, path)
	if !report.OK || len(rows) != 6 {
		t.Fatalf("%d rows, Verify = %+v", len(rows), report)
	}
	for i, r := range rows[1:5] {
		want := pending[0].Rows[i]
		if r.ID != want.ID || r.Fields[fieldSpilled] != true || !r.TS.Equal(want.TS) || r.Status != want.Status ||
			r.Path != want.Path || r.Fields["clock"] != nil || fmt.Sprint(r.Fields) != fmt.Sprint(want.Fields) {
			t.Errorf("row %d is %+v, want %+v", r.Seq, r, want)
		}
	}
	if _, err := os.Stat(lost.Path); !os.IsNotExist(err) || len(spilled(t, path)) != 0 {
		t.Errorf("the spill file is left: %v", err)
	}
}

// The rows of a spill file that was removed, for example with its whole home, are lost, and so are those written to
// it before. The rows of a file that was moved are kept.
func TestRowsInASpillFileThatWasRemovedAreReportedAsLost(t *testing.T) {
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
		// When Append returns, the rows are in the file.
		if _, err := l.Append(t.Context(), outcomeOf(session, 3)); !errors.Is(err, ErrUnavailable) {
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

// A full spill file still has space for the end of the session, and the rows that do not fit are counted.
func TestASpillFileIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), database)
	const rows = 500
	lost := spillRows(t, path, NewID(), rows)
	if lost.Kept < 50 || lost.Lost < 50 || lost.Kept+lost.Lost != rows ||
		!strings.Contains(lost.Error(), fmt.Sprintf("%d rows are lost", lost.Lost)) {
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

// next receives a value, and fails with what if none comes within a minute.
func next[T any](t testing.TB, c <-chan T, what string) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(time.Minute):
		t.Fatalf("%s: not within a minute", what)
	}
	return v
}
