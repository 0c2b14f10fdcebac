package audit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/audit/internal/chain"
	"github.com/ALRubinger/aileron/e2e/must"
)

// manipulation is a change of a home that has 20 rows of "mine", and of which an older copy was made after ten.
type manipulation struct {
	name   string
	do     func(t *testing.T, home, older string)
	reason string // of audit.broken
	found  string // in its fields
	why    string // in Verify's report
}

// restored is manipulation.why if SQLite restores every row from its write-ahead log: nothing is lost, and nothing is
// reported.
const restored = "restored"

func manipulations() []manipulation {
	other := func(n int, names ...string) func(*testing.T, string, string) {
		return func(t *testing.T, home, _ string) {
			dir := t.TempDir()
			history(t, dir, "other", n)
			replaceFiles(t, dir, home, names...)
		}
	}
	return []manipulation{
		{"cut tail", func(t *testing.T, home, _ string) {
			execSQL(t, filepath.Join(home, databaseName), "DELETE FROM events WHERE seq > 15")
		}, chain.ReasonRowMissing, chain.FoundMissing, "expected row 20 with hash"},
		{"chained again", func(t *testing.T, home, _ string) { rechain(t, filepath.Join(home, databaseName), 7) },
			chain.ReasonRowChanged, "", "expected row 20 with hash"},
		{"last row chained again", func(t *testing.T, home, _ string) { rechain(t, filepath.Join(home, databaseName), 20) },
			chain.ReasonRowChanged, "", "expected row 20 with hash"},
		{"cut and filled up", func(t *testing.T, home, _ string) {
			path := filepath.Join(home, databaseName)
			execSQL(t, path, "DELETE FROM events WHERE seq > 18")
			dir := t.TempDir() // a writer elsewhere, which has no head
			copyFile(t, path, filepath.Join(dir, databaseName))
			l := openSession(t, filepath.Join(dir, databaseName), "forger")
			for i := range 9 {
				appendNumbered(t, l, "forger", i)
			}
			closeLog(t, l)
			execSQL(t, filepath.Join(dir, databaseName), "DELETE FROM events WHERE event = ?", EventBroken)
			replaceFiles(t, dir, home, databaseName)
		}, chain.ReasonRowChanged, "", "expected row 20"},
		{"head removed", func(t *testing.T, home, _ string) { remove(t, home, headName) },
			chain.ReasonHeadMissing, chain.FoundHeadMissing, "audit.broken: expected row 20"},
		{"head emptied", func(t *testing.T, home, _ string) {
			must.Do(t, os.Truncate(filepath.Join(home, headName), 0))
		}, chain.ReasonHeadChanged, "audit.head has no readable line, and had 2", "expected row 20"},
		{"head cut", func(t *testing.T, home, _ string) {
			must.Do(t, os.Truncate(filepath.Join(home, headName), chain.LineSize))
		}, chain.ReasonHeadChanged, "audit.head has 1 lines, and had 2", "expected row 20"},
		{"head of another home", other(30, headName), chain.ReasonRowMissing, chain.FoundMissing, "expected row 30"},
		{"database removed", func(t *testing.T, home, _ string) {
			remove(t, home, databaseName, "audit.db-wal", "audit.db-shm")
		},
			chain.ReasonRowMissing, chain.FoundMissing, "expected row 20"},
		{"both removed", func(t *testing.T, home, _ string) {
			remove(t, home, databaseName, "audit.db-wal", "audit.db-shm", headName)
		}, chain.ReasonRowMissing, chain.FoundMissing, "expected row 20"},
		{"longer database", other(30, databaseName), chain.ReasonRowChanged, "", "expected row 20"},
		{"shorter database", other(5, databaseName), chain.ReasonRowMissing, chain.FoundMissing, "expected row 20"},
		{"longer pair", other(30, databaseName, headName), chain.ReasonRowChanged, "", "expected row 20"},
		{"shorter pair", other(5, databaseName, headName), chain.ReasonRowMissing, chain.FoundMissing, "expected row 20"},
		{"pair with as many lines", func(t *testing.T, home, _ string) {
			dir := t.TempDir()
			history(t, dir, "other", 10)
			history(t, dir, "another", 10)
			replaceFiles(t, dir, home, databaseName, headName)
		}, chain.ReasonRowChanged, "", "expected row 20"},
		{"older database", func(t *testing.T, home, older string) { replaceFiles(t, older, home, databaseName) },
			chain.ReasonRowMissing, chain.FoundMissing, "expected row 20"},
		{"older pair", func(t *testing.T, home, older string) { replaceFiles(t, older, home, databaseName, headName) },
			chain.ReasonRowMissing, chain.FoundMissing, "expected row 20"},
		{"witness removed", func(t *testing.T, home, _ string) { remove(t, home, witnessName) },
			chain.ReasonWitnessChanged, "the witness of audit.head is missing", "expected row 20"},
	}
}

// aged returns a home with 20 rows of two sessions, and a copy of it after ten.
func aged(t *testing.T) (home, older string) {
	t.Helper()
	home, older = t.TempDir(), t.TempDir()
	history(t, home, "first", 10)
	for _, name := range []string{databaseName, headName, witnessName} {
		copyFile(t, filepath.Join(home, name), filepath.Join(older, name))
	}
	history(t, home, "second", 10)
	return home, older
}

// A change between two sessions is reported before anything else, and no number of later rows makes the log look
// intact again.
func TestAChangedLogNeverLooksWholeAgain(t *testing.T) {
	withoutClaims(t)
	for _, m := range manipulations() {
		t.Run(m.name, func(t *testing.T) {
			home, older := aged(t)
			path := filepath.Join(home, databaseName)
			if _, report := all(t, path); !report.OK {
				t.Fatalf("before: Verify = %+v", report)
			}
			m.do(t, home, older)
			if report := verifyPath(t, path); report.OK {
				t.Error("Verify finds nothing before a session begins")
			}
			var reported []Row
			l := must.Get(Open(path, Options{Session: "third", OnBroken: func(r Row) { reported = append(reported, r) }}))(t)
			first := appendNumbered(t, l, "third", 0)
			for i := range 5 {
				appendNumbered(t, l, "third", i)
			}
			closeLog(t, l)
			history(t, home, "fourth", 6)
			history(t, home, "fifth", 60)

			rows, report := all(t, path)
			broken := wantOneBroken(t, rows, m)
			if broken.Seq != first.Seq-1 || broken.SessionID != "third" ||
				len(reported) != 1 || reported[0].Hash != broken.Hash {
				t.Errorf("audit.broken is row %d of %q, and %d were reported; the session's first row is %d",
					broken.Seq, broken.SessionID, len(reported), first.Seq)
			}
			if report.OK || !strings.Contains(whys(report), m.why) {
				t.Errorf("Verify = %+v; want %q", report, m.why)
			}
			// Without the event, the lines kept in audit.head still contradict the log.
			execSQL(t, path, "DELETE FROM events WHERE event = ?", EventBroken)
			const kept = "when a session looked for it"
			if _, report := all(t, path); report.OK || !strings.Contains(whys(report), kept) {
				t.Errorf("without the event: Verify = %+v", report)
			}
		})
	}
}

func wantOneBroken(t testing.TB, rows []Row, m manipulation) Row {
	t.Helper()
	var broken []Row
	for _, r := range rows {
		if r.Event == EventBroken {
			broken = append(broken, r)
		}
	}
	if len(broken) != 1 {
		t.Fatalf("%d rows report a broken log, want 1: %v", len(broken), broken)
	}
	r := broken[0]
	found, _ := r.Fields["found"].(string)
	if r.Reason != m.reason || m.found != "" && found != m.found || m.found == "" && len(found) != len(chain.ZeroHash) {
		t.Errorf("audit.broken has the reason %q and found %q; want %q and %q", r.Reason, found, m.reason, m.found)
	}
	return r
}

// A removed head is a finding; the row that it named is not.
func TestARemovedHeadDoesNotBreakItsRow(t *testing.T) {
	home, _ := aged(t)
	path := filepath.Join(home, databaseName)
	remove(t, home, headName)
	history(t, home, "third", 6)
	report := verifyPath(t, path)
	text := whys(report)
	if report.OK || !strings.Contains(text, "is in the log, but") || strings.Contains(text, "was not in the log") {
		t.Errorf("Verify = %+v; want that row 20 is in the log and its head was not", report)
	}
}

// Behind a row that does not fit, the chain is checked from that row on: every break is listed, and no row between
// two of them.
func TestVerifyNamesEveryBreakAndNoOtherRow(t *testing.T) {
	path := history(t, t.TempDir(), "first", 40)
	execSQL(t, path, "DELETE FROM events WHERE seq BETWEEN 5 AND 8")
	execSQL(t, path, "UPDATE events SET host = 'innocent.example' WHERE seq = 20")
	execSQL(t, path, "DELETE FROM events WHERE seq = 30")
	_, report := all(t, path)
	want := []string{
		"rows 5 to 8 are missing before it", "its content does not have its hash", "row 30 is missing before it",
	}
	if len(report.Findings) != len(want) || report.Rows != 4 {
		t.Fatalf("Verify = %+v", report)
	}
	for i, seq := range []int64{9, 20, 31} {
		if f := report.Findings[i]; f.Seq != seq || !strings.HasPrefix(f.Why, want[i]) {
			t.Errorf("finding %d is %+v; want row %d and %q", i, f, seq, want[i])
		}
	}
}
