package audit

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit/internal/chain"
	"github.com/ALRubinger/aileron/audit/internal/table"
	"github.com/ALRubinger/aileron/e2e/must"
)

// A running session remembers what it wrote, whatever is done to the files.
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
				must.Do(t, os.Rename(filepath.Join(home, "new"), filepath.Join(home, name)))
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
		{name: "older database in place", do: inPlace(databaseName), why: restored},
		{name: "older database, log and index in place", do: inPlace(append(sides, databaseName)...)},
		{name: "older database and log in place", do: inPlace(databaseName, sides[0])},
		{name: "older database in place, log and index removed",
			do: both(inPlace(databaseName), without(sides...)), why: restored},
		{name: "older database by rename", do: renamed(databaseName)},
		{name: "older database, log and index by rename", do: renamed(append(sides, databaseName)...)},
		{name: "older database by rename, log and index removed", do: both(renamed(databaseName), without(sides...))},
		{name: "older pair in place", do: inPlace(databaseName, headName)},
		{name: "older pair by rename", do: both(without(sides...), renamed(databaseName, headName))},
		{name: "older triple by rename", do: both(without(sides...), renamed(databaseName, headName, witnessName))},
		{name: "all removed", do: without(append(sides, databaseName, headName, witnessName)...)},
	}...)
	for i := range 2 * len(list) {
		m, session := list[i/2], "mine"
		if i%2 == 1 {
			session = NewID() // it has a journal
		}
		t.Run(m.name, func(t *testing.T) {
			home, older := t.TempDir(), t.TempDir()
			path := history(t, home, "first", 6)
			l := openSession(t, path, session)
			for i := range 4 {
				appendNumbered(t, l, session, i)
			}
			l.flush(t.Context())
			for _, name := range append(sides, databaseName, headName, witnessName) {
				copyFile(t, filepath.Join(home, name), filepath.Join(older, name))
			}
			var before Row
			for i := range 10 {
				before = appendNumbered(t, l, session, i)
			}
			l.flush(t.Context())
			before = must.Get(l.Get(t.Context(), before.ID))(t) // with its hash
			m.do(t, home, older)
			if m.name == "witness removed" {
				return // a running session is not misled, and recreates it
			}
			whileIdle(t, l, func() { l.attested = l.attested.Add(-groupDelay) }) // as if the session had been idle
			unavailable := 0
			for i := range 6 {
				if _, err := l.Append(t.Context(), Row{Event: EventProxyProxied, SessionID: session, Status: i}); err != nil {
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
			history(t, home, "next", 3)
			rows, _ := all(t, path)
			events := 0
			for i, r := range rows {
				if r.Event != EventBroken {
					continue
				}
				if events++; rows[i+1].Status != 0 {
					t.Errorf("audit.broken is row %d, behind rows of the session", r.Seq)
				}
			}
			if events != 1 {
				t.Errorf("%d events report it, want 1", events)
			}
		})
	}
}

// A writer that meets the row of another looks for its own even if a comparison is not due.
func TestAWriterBehindAnothersRowLooksForItsOwn(t *testing.T) {
	for _, cut := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), databaseName)
		l := openSession(t, path, "mine")
		var last Row
		for i := range 10 {
			last = appendNumbered(t, l, "mine", i)
		}
		l.flush(t.Context()) // no write is left for later
		whileIdle(t, l, func() { l.attested = time.Now().Add(time.Hour) })
		if cut {
			execSQL(t, path, "DELETE FROM events WHERE seq > 8")
		}
		tx := must.Get(table.NewWriter(path, "", chain.BusyTimeout))(t)
		rows := []*Row{{Event: "a"}, {Event: "b"}, {Event: "c"}} // by a writer that compares nothing
		must.Do(t, tx.Write(rows))
		tx.Close()
		appendNumbered(t, l, "mine", 10)
		closeLog(t, l)
		got, report := all(t, path)
		reported := len(got) == 13 && got[11].Event == EventBroken && got[11].Fields["expected_hash"] == last.Hash
		if report.OK == cut || cut && !reported {
			t.Errorf("cut: %v: %d rows; Verify = %+v", cut, len(got), report)
		}
	}
}

// Without its write-ahead log on disk, a session would continue in a file that no other process sees.
func TestNoRowIsWrittenToAnUnlinkedLog(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, databaseName)
	l := openSession(t, path, "mine")
	for i := range 10 {
		appendNumbered(t, l, "mine", i)
	}
	l.flush(t.Context())
	remove(t, dir, "audit.db-wal", "audit.db-shm")
	whileIdle(t, l, func() { l.attested = time.Time{} })
	appendNumbered(t, l, "mine", 10)
	rows, report := all(t, path)
	if len(rows) != 11 || !report.OK {
		t.Errorf("another process sees %d rows; Verify = %+v", len(rows), report)
	}
	closeLog(t, l)
	if rows, report := all(t, path); len(rows) != 11 || !report.OK {
		t.Errorf("afterwards there are %d rows; Verify = %+v", len(rows), report)
	}
}

// A damaged page is a finding for Verify and for a session.
func TestADamagedDatabaseIsAFinding(t *testing.T) {
	dir := t.TempDir()
	path := history(t, dir, "first", 400)
	raw := must.Get(os.ReadFile(path))(t)
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
			path := filepath.Join(home, databaseName)
			must.Do(t, os.WriteFile(path, damaged, 0o600))
			l := must.Get(OpenReader(path))(t)
			defer l.Close()
			report, err := l.Verify(t.Context())
			if err != nil || report.OK || !strings.Contains(whys(report), "the database is damaged") {
				t.Errorf("Verify = %+v, %v", report, err)
			}
			w := must.Get(Open(path, Options{}))(t)
			_, _ = w.Append(t.Context(), Row{Event: EventProxyStarted})
			_ = w.Close()
			if report, err := l.Verify(t.Context()); err != nil || report.OK {
				t.Errorf("after a session: Verify = %+v, %v", report, err)
			}
		})
	}
}
