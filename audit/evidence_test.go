package audit

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// history writes n rows as one session and returns the database's path.
func history(t testing.TB, dir, session string, n int) string {
	t.Helper()
	path := filepath.Join(dir, "audit.db")
	l := openSession(t, path, session)
	for i := range n {
		appendNumbered(t, l, session, i)
	}
	closeLog(t, l)
	return path
}

func openSession(t testing.TB, path, session string) *Log {
	t.Helper()
	l, err := Open(path, Options{Session: session})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func closeLog(t testing.TB, l *Log) {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

func appendNumbered(t testing.TB, l *Log, session string, i int) Row {
	t.Helper()
	r, err := l.Append(context.Background(), Row{Event: EventProxyProxied, SessionID: session,
		Decision: DecisionProxied, Method: "GET", Host: fmt.Sprintf("host-%d.%s.example", i, session), Port: 443, Path: fmt.Sprintf("/items/%d", i), Status: 200,
		Fields: map[string]any{"request_id": NewID(), "attempt": i}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// all returns every row, and the report of Verify.
func all(t testing.TB, path string) ([]Row, Report) {
	t.Helper()
	l, err := OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	rows, err := l.List(context.Background(), Filter{})
	if err != nil {
		t.Fatal(err)
	}
	report, err := l.Verify(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return rows, report
}

// execSQL changes a database behind the log's back.
func execSQL(t testing.TB, path, query string, args ...any) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(query, args...); err != nil {
		t.Fatal(err)
	}
}

// rechain changes the host of row seq and chains all rows again.
func rechain(t testing.TB, path string, seq int64) {
	t.Helper()
	rows, _ := all(t, path)
	prev := zeroHash
	for _, r := range rows {
		if r.Seq == seq {
			r.Host = "innocent.example"
		}
		fields, err := appendObject(nil, r.Fields)
		if err != nil {
			t.Fatal(err)
		}
		r.chain(prev, string(fields))
		prev = r.Hash
		execSQL(t, path, "UPDATE events SET host = ?, prev_hash = ?, hash = ? WHERE seq = ?",
			r.Host, r.PrevHash, r.Hash, r.Seq)
	}
}

func copyFile(t testing.TB, from, to string) {
	t.Helper()
	raw, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, raw, 0o600); err != nil {
		t.Fatal(err)
	}
}

func remove(t testing.TB, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
}

// replaceFiles puts files of one home into another.
func replaceFiles(t testing.TB, from, to string, names ...string) {
	t.Helper()
	remove(t, to, "audit.db-wal", "audit.db-shm")
	for _, name := range names {
		remove(t, to, name)
		copyFile(t, filepath.Join(from, name), filepath.Join(to, name))
	}
}

const database, headName, witnessName = "audit.db", "audit.head", ".audit.witness"

// manipulation is what somebody does to a home that holds 20 rows of "mine"
// and had an older copy taken after ten.
type manipulation struct {
	name   string
	do     func(t *testing.T, home, older string)
	reason string // of audit.broken
	found  string // in its fields
	why    string // in Verify's report
}

// restored stands in manipulation.why where SQLite brings every row back from
// its write-ahead log: nothing is lost, and nothing is reported.
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
			execSQL(t, filepath.Join(home, database), "DELETE FROM events WHERE seq > 15")
		}, reasonRowMissing, foundMissing, "expected row 20 with hash"},
		{"chained again", func(t *testing.T, home, _ string) { rechain(t, filepath.Join(home, database), 7) },
			reasonRowChanged, "", "expected row 20 with hash"},
		{"last row chained again", func(t *testing.T, home, _ string) { rechain(t, filepath.Join(home, database), 20) },
			reasonRowChanged, "", "expected row 20 with hash"},
		{"cut and filled up", func(t *testing.T, home, _ string) {
			path := filepath.Join(home, database)
			execSQL(t, path, "DELETE FROM events WHERE seq > 18")
			dir := t.TempDir() // a writer elsewhere, which knows no head
			copyFile(t, path, filepath.Join(dir, database))
			l := openSession(t, filepath.Join(dir, database), "forger")
			for i := range 9 {
				appendNumbered(t, l, "forger", i)
			}
			closeLog(t, l)
			execSQL(t, filepath.Join(dir, database), "DELETE FROM events WHERE event = ?", EventBroken)
			replaceFiles(t, dir, home, database)
		}, reasonRowChanged, "", "expected row 20"},
		{"head removed", func(t *testing.T, home, _ string) { remove(t, home, headName) },
			reasonHeadMissing, foundHeadMissing, "audit.broken: expected row 20"},
		{"head emptied", func(t *testing.T, home, _ string) {
			if err := os.Truncate(filepath.Join(home, headName), 0); err != nil {
				t.Fatal(err)
			}
		}, reasonHeadChanged, "audit.head has no readable line, and had 2", "expected row 20"},
		{"head cut", func(t *testing.T, home, _ string) {
			if err := os.Truncate(filepath.Join(home, headName), lineSize); err != nil {
				t.Fatal(err)
			}
		}, reasonHeadChanged, "audit.head has 1 lines, and had 2", "expected row 20"},
		{"head of another home", other(30, headName), reasonRowMissing, foundMissing, "expected row 30"},
		{"database removed", func(t *testing.T, home, _ string) { remove(t, home, database, "audit.db-wal", "audit.db-shm") },
			reasonRowMissing, foundMissing, "expected row 20"},
		{"both removed", func(t *testing.T, home, _ string) {
			remove(t, home, database, "audit.db-wal", "audit.db-shm", headName)
		}, reasonRowMissing, foundMissing, "expected row 20"},
		{"longer database", other(30, database), reasonRowChanged, "", "expected row 20"},
		{"shorter database", other(5, database), reasonRowMissing, foundMissing, "expected row 20"},
		{"longer pair", other(30, database, headName), reasonRowChanged, "", "expected row 20"},
		{"shorter pair", other(5, database, headName), reasonRowMissing, foundMissing, "expected row 20"},
		{"older database", func(t *testing.T, home, older string) { replaceFiles(t, older, home, database) },
			reasonRowMissing, foundMissing, "expected row 20"},
		{"older pair", func(t *testing.T, home, older string) { replaceFiles(t, older, home, database, headName) },
			reasonRowMissing, foundMissing, "expected row 20"},
		{"witness removed", func(t *testing.T, home, _ string) { remove(t, home, witnessName) },
			reasonWitnessChanged, "the witness of audit.head is missing", "expected row 20"},
	}
}

// aged is a home with 20 rows of two sessions, and a copy of it after ten.
func aged(t *testing.T) (home, older string) {
	t.Helper()
	home, older = t.TempDir(), t.TempDir()
	history(t, home, "first", 10)
	for _, name := range []string{database, headName, witnessName} {
		copyFile(t, filepath.Join(home, name), filepath.Join(older, name))
	}
	history(t, home, "second", 10)
	return home, older
}

// What is changed between two sessions is reported before anything else, and
// no number of rows behind it makes the log whole again.
func TestAChangedLogNeverLooksWholeAgain(t *testing.T) {
	for _, m := range manipulations() {
		t.Run(m.name, func(t *testing.T) {
			home, older := aged(t)
			path := filepath.Join(home, database)
			if _, report := all(t, path); !report.OK {
				t.Fatalf("before: Verify = %+v", report)
			}
			m.do(t, home, older)
			if report := verifyPath(t, path); report.OK {
				t.Error("Verify finds nothing before a session begins")
			}
			var told []Row
			l, err := Open(path, Options{Session: "third", OnBroken: func(r Row) { told = append(told, r) }})
			if err != nil {
				t.Fatal(err)
			}
			first := appendNumbered(t, l, "third", 0)
			for i := range 5 {
				appendNumbered(t, l, "third", i)
			}
			closeLog(t, l)
			history(t, home, "fourth", 6)
			history(t, home, "fifth", 60)

			rows, report := all(t, path)
			broken := wantOneBroken(t, rows, m)
			if broken.Seq != first.Seq-1 || broken.SessionID != "third" || len(told) != 1 || told[0].Hash != broken.Hash {
				t.Errorf("audit.broken is row %d of %q, and %d were told; the session's first row is %d",
					broken.Seq, broken.SessionID, len(told), first.Seq)
			}
			if report.OK || !strings.Contains(whys(report), m.why) {
				t.Errorf("Verify = %+v; want %q", report, m.why)
			}
			// Without the event, what audit.head keeps is still against it.
			execSQL(t, path, "DELETE FROM events WHERE event = ?", EventBroken)
			const kept = "was not in the log when a session looked for it"
			if _, report := all(t, path); report.OK || !strings.Contains(whys(report), kept) {
				t.Errorf("without the event: Verify = %+v", report)
			}
		})
	}
}

func verifyPath(t testing.TB, path string) Report {
	t.Helper()
	if _, err := os.Stat(path); err != nil {
		report, err := VerifyMissing(path)
		if err != nil {
			t.Fatal(err)
		}
		return report
	}
	_, report := all(t, path)
	return report
}

func whys(r Report) string {
	var b strings.Builder
	for _, f := range r.Findings {
		fmt.Fprintln(&b, f.Why)
	}
	return b.String()
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
	if r.Reason != m.reason || m.found != "" && found != m.found || m.found == "" && len(found) != len(zeroHash) {
		t.Errorf("audit.broken has the reason %q and found %q; want %q and %q", r.Reason, found, m.reason, m.found)
	}
	return r
}

// A session that runs remembers what it wrote, whatever is done to the files.
func TestARunningSessionRemembersWhatItWrote(t *testing.T) {
	inPlace := func(names ...string) func(*testing.T, string, string) {
		return func(t *testing.T, home, older string) {
			for _, name := range names {
				copyFile(t, filepath.Join(older, name), filepath.Join(home, name)) // truncates and writes
			}
		}
	}
	renamed := func(names ...string) func(*testing.T, string, string) {
		return func(t *testing.T, home, older string) {
			for _, name := range names {
				copyFile(t, filepath.Join(older, name), filepath.Join(home, "new"))
				if err := os.Rename(filepath.Join(home, "new"), filepath.Join(home, name)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	sides := []string{"audit.db-wal", "audit.db-shm"}
	both := func(f, g func(*testing.T, string, string)) func(*testing.T, string, string) {
		return func(t *testing.T, home, older string) { f(t, home, older); g(t, home, older) }
	}
	without := func(names ...string) func(*testing.T, string, string) {
		return func(t *testing.T, home, _ string) { remove(t, home, names...) }
	}
	list := append(manipulations(), []manipulation{
		{name: "older database in place", do: inPlace(database), why: restored},
		{name: "older database, log and index in place", do: inPlace(append(sides, database)...)},
		{name: "older database and log in place", do: inPlace(database, sides[0])},
		{name: "older database in place, log and index removed", do: both(inPlace(database), without(sides...)), why: restored},
		{name: "older database by rename", do: renamed(database)},
		{name: "older database, log and index by rename", do: renamed(append(sides, database)...)},
		{name: "older database by rename, log and index removed", do: both(renamed(database), without(sides...))},
		{name: "older pair in place", do: inPlace(database, headName)},
		{name: "older pair by rename", do: both(without(sides...), renamed(database, headName))},
		{name: "older triple by rename", do: both(without(sides...), renamed(database, headName, witnessName))},
		{name: "all removed", do: without(append(sides, database, headName, witnessName)...)},
	}...)
	for _, m := range list {
		t.Run(m.name, func(t *testing.T) {
			home, older := t.TempDir(), t.TempDir()
			path := history(t, home, "first", 6)
			l := openSession(t, path, "mine")
			for i := range 4 {
				appendNumbered(t, l, "mine", i)
			}
			l.settle(t.Context())
			for _, name := range append(sides, database, headName, witnessName) {
				copyFile(t, filepath.Join(home, name), filepath.Join(older, name))
			}
			var before Row
			for i := range 10 {
				before = appendNumbered(t, l, "mine", i)
			}
			l.settle(t.Context())
			m.do(t, home, older)
			if m.name == "witness removed" {
				return // hides nothing from a session that runs, which makes it anew
			}
			l.attested = l.attested.Add(-lingering) // as if the session had been idle
			unavailable := 0
			for i := range 6 {
				if _, err := l.Append(t.Context(), Row{Event: EventProxyProxied, SessionID: "mine", Status: i}); err != nil {
					unavailable++
				}
			}
			_ = l.Close()
			report := verifyPath(t, path)
			if m.why == restored {
				rows, _ := all(t, path)
				if !report.OK || len(rows) != 26 || rows[19].Hash != before.Hash {
					t.Errorf("%d rows are left; Verify = %+v", len(rows), report)
				}
				return
			}
			if report.OK || !strings.Contains(whys(report), before.Hash) {
				t.Fatalf("Verify = %+v; want row %d with %s", report, before.Seq, before.Hash)
			}
			if unavailable > 0 {
				return
			}
			rows, _ := all(t, path)
			for i, r := range rows {
				if r.Event == EventBroken {
					if i+1 < len(rows) && rows[i+1].Status != 0 {
						t.Errorf("audit.broken is row %d, behind rows of the session", r.Seq)
					}
					return
				}
			}
			t.Error("no event reports it")
		})
	}
}

// audit.head as earlier versions wrote it is the first line of the new file.
func TestTheFormerHeadIsTheFirstLine(t *testing.T) {
	for _, cut := range []bool{false, true} {
		dir := t.TempDir()
		path := history(t, dir, "first", 10)
		rows, _ := all(t, path)
		former := fmt.Appendf(nil, "%020d %s\n", rows[9].Seq, rows[9].Hash)
		remove(t, dir, witnessName)
		if err := os.WriteFile(filepath.Join(dir, headName), former, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, report := all(t, path); !report.OK {
			t.Errorf("a home of an earlier version: Verify = %+v", report)
		}
		if cut {
			execSQL(t, path, "DELETE FROM events WHERE seq > 8")
		}
		history(t, dir, "second", 6)
		raw, err := os.ReadFile(filepath.Join(dir, headName))
		if err != nil || !bytes.HasPrefix(raw, former[:85]) {
			t.Errorf("audit.head is %q, %v; want the former head first", raw, err)
		}
		if _, report := all(t, path); report.OK == cut || cut && !strings.Contains(whys(report), rows[9].Hash) {
			t.Errorf("cut: %v: Verify = %+v", cut, report)
		}
	}
}

// Each thing that can be wrong with audit.head has a sentence of its own.
func TestEveryFaultOfAHeadFileIsNamed(t *testing.T) {
	change := func(f func(raw []byte) []byte) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			raw, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, f(raw), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range []struct {
		name string
		do   func(*testing.T, string)
		why  string
	}{
		{"missing", func(t *testing.T, path string) { remove(t, filepath.Dir(path), headName) }, "is missing"},
		{"empty", change(func([]byte) []byte { return nil }), "has no readable line, and had 3"},
		{"cut at a line", change(func(raw []byte) []byte { return raw[:2*lineSize] }), "has 2 lines, and had 3"},
		{"cut in a line", change(func(raw []byte) []byte { return raw[:3*lineSize-7] }), "line 3 of audit.head is cut"},
		{"first line gone", change(func(raw []byte) []byte { return raw[lineSize:] }),
			"line 1 of audit.head has the number 2"},
		{"re-ordered", change(func(raw []byte) []byte {
			return append(append(bytes.Clone(raw[lineSize:2*lineSize]), raw[:lineSize]...), raw[2*lineSize:]...)
		}), "line 1 of audit.head has the number 2"},
		{"garbled", change(func(raw []byte) []byte { raw[lineSize+30] = '!'; return raw }),
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

// A damaged page is a finding, for Verify and for a session.
func TestADamagedDatabaseIsAFinding(t *testing.T) {
	dir := t.TempDir()
	path := history(t, dir, "first", 400)
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const page = 4096
	for _, c := range []struct {
		name string
		at   int
	}{{"a page in the middle", len(raw)/page/2*page + 8}, {"the last page", len(raw) - page}} {
		t.Run(c.name, func(t *testing.T) {
			damaged := bytes.Clone(raw)
			copy(damaged[c.at:], bytes.Repeat([]byte{0xa5}, page-8))
			home := t.TempDir()
			for _, name := range []string{headName, witnessName} {
				copyFile(t, filepath.Join(dir, name), filepath.Join(home, name))
			}
			path := filepath.Join(home, database)
			if err := os.WriteFile(path, damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			l, err := OpenReader(path)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			report, err := l.Verify(t.Context())
			if err != nil || report.OK || !strings.Contains(whys(report), "the database is damaged") {
				t.Errorf("Verify = %+v, %v", report, err)
			}
			w, err := Open(path, Options{})
			if err != nil {
				t.Fatal(err)
			}
			_, _ = w.Append(t.Context(), Row{Event: EventProxyStarted})
			_ = w.Close()
			if report, err := l.Verify(t.Context()); err != nil || report.OK {
				t.Errorf("after a session: Verify = %+v, %v", report, err)
			}
		})
	}
}
