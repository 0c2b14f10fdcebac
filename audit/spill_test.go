package audit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit/internal/chain"
	"github.com/ALRubinger/aileron/audit/internal/journal"
	"github.com/ALRubinger/aileron/e2e/must"
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

// keepRows ends a session whose log refuses its last n rows, and returns the error of Close. Its journal has them.
func keepRows(t testing.TB, path, session string, n int) *LostError {
	t.Helper()
	l := openSession(t, path, session)
	appendNumbered(t, l, session, 0)
	l.flush(t.Context())
	refuse(t, path, "1")
	for i := range n - 1 {
		must.Do(t, l.AppendSoon(t.Context(), outcomeOf(session, i)))
	}
	ended := Row{
		Event: EventSessionEnded, SessionID: session, Source: SourceLauncher,
		Fields: map[string]any{"exit_code": 0, "cause": "terminated"},
	}
	must.Do(t, l.AppendSoon(t.Context(), ended))
	var lost *LostError
	if err := l.Close(); !errors.As(err, &lost) || !errors.Is(err, ErrUnavailable) {
		t.Fatalf("Close = %v, want a LostError", err)
	}
	admit(t, path)
	return lost
}

func spilled(t testing.TB, path string) []Spill {
	t.Helper()
	all := must.Get(Spills(path))(t)
	return all
}

func TestTheLastRowsOfASessionOutliveALogThatCannotBeWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), databaseName)
	session := NewID()
	lost := keepRows(t, path, session, 4)
	if lost.Kept != 4 || lost.Lost != 0 || !strings.Contains(lost.Error(), "refused by the test") {
		t.Errorf("Close = %+v: %v", lost, lost)
	}
	info, err := os.Stat(lost.Path)
	if err != nil || info.Mode().Perm() != 0o600 || info.Size() < journal.Ahead {
		t.Errorf("the journal: %v, %v", info, err)
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
	checkKept(t, rows[1:5], pending[0].Rows)
	if _, err := os.Stat(lost.Path); !os.IsNotExist(err) || len(spilled(t, path)) != 0 {
		t.Errorf("the journal is left: %v", err)
	}
}

// checkKept compares rows of the log with those that were kept for it.
func checkKept(t testing.TB, rows, kept []Row) {
	t.Helper()
	for i, r := range rows {
		want := kept[i]
		if r.ID != want.ID || r.Fields[chain.FieldSpilled] != true || !r.TS.Equal(want.TS) || r.Status != want.Status ||
			r.Path != want.Path || r.Fields["clock"] != nil || fmt.Sprint(r.Fields) != fmt.Sprint(want.Fields) {
			t.Errorf("row %d is %+v, want %+v", r.Seq, r, want)
		}
	}
}

// next receives a value, and fails with what if none comes in time.
func next[T any](t testing.TB, c <-chan T, what string) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(patience):
		t.Fatalf("%s: not within %v", what, patience)
	}
	return v
}
