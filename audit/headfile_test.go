package audit

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit/internal/chain"
	"github.com/ALRubinger/aileron/e2e/must"
)

// Each fault of audit.head has a sentence of its own.
func TestEveryFaultOfAHeadFileIsNamed(t *testing.T) {
	change := func(f func(raw []byte) []byte) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			raw := must.Get(os.ReadFile(path))(t)
			must.Do(t, os.WriteFile(path, f(raw), 0o600))
		}
	}
	for _, c := range []struct {
		name string
		do   func(*testing.T, string)
		why  string
	}{
		{"missing", func(t *testing.T, path string) { remove(t, filepath.Dir(path), headName) }, "is missing"},
		{"empty", change(func([]byte) []byte { return nil }), "has no readable line, and had 3"},
		{"cut at a line", change(func(raw []byte) []byte { return raw[:2*chain.LineSize] }), "has 2 lines, and had 3"},
		{"cut in a line", change(func(raw []byte) []byte { return raw[:3*chain.LineSize-7] }), "line 3 of audit.head is cut"},
		{"first line gone", change(func(raw []byte) []byte { return raw[chain.LineSize:] }),
			"line 1 of audit.head has the number 2"},
		{"re-ordered", change(func(raw []byte) []byte {
			const size = chain.LineSize
			return append(append(bytes.Clone(raw[size:2*size]), raw[:size]...), raw[2*size:]...)
		}), "line 1 of audit.head has the number 2"},
		{"garbled", change(func(raw []byte) []byte { raw[chain.LineSize+30] = '!'; return raw }),
			"line 2 of audit.head is garbled"},
		{"contradicted", change(func(raw []byte) []byte { copy(raw[21:], strings.Repeat("a", 64)); return raw }),
			"line 1 of audit.head has another hash for row 3: expected aaaa"},
		{"ahead", change(func(raw []byte) []byte { copy(raw, "00000000000000000999"); return raw }),
			"the log ends at row 9, and once had row 999"},
		{"junk", change(func([]byte) []byte { return bytes.Repeat([]byte("junk\n"), 500) }),
			"line 1 of audit.head is garbled"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			var path string
			for _, session := range []string{"first", "second", "third"} {
				path = history(t, dir, session, 3)
			}
			c.do(t, filepath.Join(dir, headName))
			if _, report := all(t, path); report.OK || !strings.Contains(whys(report), c.why) {
				t.Errorf("Verify = %+v; want %q", report, c.why)
			}
			history(t, dir, "fourth", 6)
			if _, report := all(t, path); report.OK {
				t.Error("six rows later Verify finds nothing")
			}
		})
	}
}

// If a process is killed after it has marked a line and before it has committed the event, the next one commits it.
func TestAMarkedLineIsReportedByTheNextProcess(t *testing.T) {
	home := t.TempDir()
	path := history(t, home, "first", 10)
	l := openSession(t, path, "killed")
	appendNumbered(t, l, "killed", 0)
	l.flush(t.Context())
	execSQL(t, path, "DELETE FROM events WHERE seq > 8")
	whileIdle(t, l, func() { l.attested = time.Time{} })
	if err := l.attest(); err != nil || l.broken == nil {
		t.Fatalf("attest = %v, and reports %v", err, l.broken)
	}
	l.checkpoints.Stop() // the process is killed here
	l.tx.Close()
	_ = l.db.SQL().Close()

	history(t, home, "second", 6)
	history(t, home, "third", 6)
	rows, report := all(t, path)
	broken := wantOneBroken(t, rows, manipulation{reason: chain.ReasonRowMissing, found: chain.FoundMissing})
	if report.OK || broken.SessionID != "second" || broken.Fields["expected_seq"] != 11.0 {
		t.Errorf("audit.broken is %+v; Verify = %+v", broken, report)
	}
	known, err := chain.ReadHeads(filepath.Join(home, headName), filepath.Join(home, witnessName))
	if err != nil || len(known.Lines) != 4 ||
		known.Lines[0].State != chain.LineReported || known.Lines[1].State != chain.LineReported {
		t.Errorf("audit.head has %+v, %v; want two acknowledged lines and two heads", known.Lines, err)
	}
}

// A file that replaced audit.head is not written to.
func TestALineOfAnotherFileStays(t *testing.T) {
	dir := t.TempDir()
	l := openSession(t, filepath.Join(dir, databaseName), "mine")
	appendNumbered(t, l, "mine", 0)
	l.flush(t.Context())
	other := t.TempDir()
	history(t, other, "other", 30)
	copyFile(t, filepath.Join(other, headName), filepath.Join(dir, headName)) // truncates and writes
	l.head.Checked, l.head.Behind = time.Time{}, true
	l.head.Flush()
	want := must.Get(os.ReadFile(filepath.Join(other, headName)))(t)
	if got, err := os.ReadFile(filepath.Join(dir, headName)); err != nil || !bytes.Equal(got, want) {
		t.Errorf("audit.head is %q, %v; want %q", got, err, want)
	}
	closeLog(t, l)
	if _, report := all(t, filepath.Join(dir, databaseName)); report.OK {
		t.Error("Verify finds nothing")
	}
}
