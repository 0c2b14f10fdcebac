package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// oldSpill writes one row of a session to the log, and n more to a spill file as an earlier version left it.
func oldSpill(t testing.TB, path, session string, n int) (file string) {
	t.Helper()
	l := openSession(t, path, session)
	appendNumbered(t, l, session, 0)
	closeLog(t, l)
	rows, _ := all(t, path)
	last := rows[len(rows)-1]
	header, err := json.Marshal(spillHeader{1, session, last.Seq, last.Hash})
	if err != nil {
		t.Fatal(err)
	}
	first := sha256.Sum256(header)
	out, sum := append(header, '\n'), first[:]
	for i := range n {
		r := outcomeOf(session, i)
		if i == n-1 {
			r = Row{Event: EventSessionEnded, SessionID: session, Source: SourceLauncher, Fields: map[string]any{"exit_code": 0}}
		}
		r.ID, r.TS = NewID(), time.Now().UTC()
		r.Fields[fieldSpilled] = true
		raw, err := json.Marshal(spillRow(r))
		if err != nil {
			t.Fatal(err)
		}
		sum = chainSpill(sum, raw)
		line, err := json.Marshal(spillLine{hex.EncodeToString(sum), raw})
		if err != nil {
			t.Fatal(err)
		}
		out = append(append(out, line...), '\n')
	}
	file = filepath.Join(filepath.Dir(path), spillPrefix+session+"-"+NewID())
	if err := os.WriteFile(file, append(out, make([]byte, spillSize-len(out))...), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// The rows of a spill file that an earlier version left are added to the log.
func TestTheRowsOfASpillFileAreAddedToTheLog(t *testing.T) {
	path, session := filepath.Join(t.TempDir(), database), NewID()
	file := oldSpill(t, path, session, 4)
	pending := spilled(t, path)
	if len(pending) != 1 || pending[0].Session != session || len(pending[0].Rows) != 4 {
		t.Fatalf("Spills = %+v", pending)
	}
	history(t, filepath.Dir(path), NewID(), 1)
	rows, report := all(t, path)
	if !report.OK || len(rows) != 6 {
		t.Fatalf("%d rows, Verify = %+v", len(rows), report)
	}
	checkKept(t, rows[1:5], pending[0].Rows)
	if _, err := os.Stat(file); !os.IsNotExist(err) || len(spilled(t, path)) != 0 {
		t.Errorf("the spill file is left: %v", err)
	}
}

// A process that was killed while it wrote a row left the rows before it.
func TestATornLastLineOfASpillFileIsDropped(t *testing.T) {
	path := filepath.Join(t.TempDir(), database)
	file := oldSpill(t, path, NewID(), 4)
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	raw = bytes.TrimRight(raw, "\x00")
	for cut := range len(raw) {
		want := max(0, bytes.Count(raw[:cut], []byte{'\n'})-1)
		rows, _, err := parseSpill(raw[:cut], spillSession(file))
		if len(rows) != want || err != nil {
			t.Fatalf("cut at %d: %d rows, %v; want %d", cut, len(rows), err, want)
		}
	}
}
