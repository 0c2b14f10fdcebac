package audit

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit/internal/chain"
	"github.com/ALRubinger/aileron/e2e/must"
)

const databaseName, headName, witnessName = "audit.db", "audit.head", ".audit.witness"

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
	l := must.Get(Open(path, Options{Session: session}))(t)
	return l
}

func closeLog(t testing.TB, l *Log) {
	t.Helper()
	must.Do(t, l.Close())
}

func appendNumbered(t testing.TB, l *Log, session string, i int) Row {
	t.Helper()
	r, err := l.Append(context.Background(), Row{
		Event: EventProxyProxied, SessionID: session, Decision: DecisionProxied, Method: "GET",
		Host: fmt.Sprintf("host-%d.%s.example", i, session), Port: 443, Path: fmt.Sprintf("/items/%d", i), Status: 200,
		Fields: map[string]any{"request_id": NewID(), "attempt": i},
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// all returns every row but those with signed heads, and the report of Verify.
func all(t testing.TB, path string) ([]Row, Report) {
	t.Helper()
	l := must.Get(OpenReader(path))(t)
	defer l.Close()
	rows := must.Get(l.List(context.Background(), Filter{}))(t)
	rows = slices.DeleteFunc(rows, func(r Row) bool { return r.Event == EventCheckpoint })
	report := must.Get(l.Verify(context.Background()))(t)
	return rows, report
}

// execSQL changes a database without the package, and without its triggers.
func execSQL(t testing.TB, path, query string, args ...any) {
	t.Helper()
	db := must.Get(sql.Open("sqlite", path))(t)
	defer db.Close()
	must.Get(db.Exec(dropTriggers))(t)
	must.Get(db.Exec(query, args...))(t)
}

// dropTriggers is what a person who wants to change a log does first.
const dropTriggers = "DROP TRIGGER IF EXISTS events_update; DROP TRIGGER IF EXISTS events_delete;"

// rechain changes the host of row seq and chains all rows again.
func rechain(t testing.TB, path string, seq int64) {
	t.Helper()
	rows, _ := all(t, path)
	prev := chain.ZeroHash
	for _, r := range rows {
		if r.Seq == seq {
			r.Host = "innocent.example"
		}
		fields := must.Get(chain.AppendObject(nil, r.Fields, ""))(t)
		r.Chain(prev, string(fields))
		prev = r.Hash
		execSQL(t, path, "UPDATE events SET host = ?, prev_hash = ?, hash = ? WHERE seq = ?",
			r.Host, r.PrevHash, r.Hash, r.Seq)
	}
}

func copyFile(t testing.TB, from, to string) {
	t.Helper()
	raw := must.Get(os.ReadFile(from))(t)
	must.Do(t, os.WriteFile(to, raw, 0o600))
}

func remove(t testing.TB, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
}

// replaceFiles copies files of one home over those of another.
func replaceFiles(t testing.TB, from, to string, names ...string) {
	t.Helper()
	remove(t, to, "audit.db-wal", "audit.db-shm")
	for _, name := range names {
		remove(t, to, name)
		copyFile(t, filepath.Join(from, name), filepath.Join(to, name))
	}
}

func verifyPath(t testing.TB, path string) Report {
	t.Helper()
	if _, err := os.Stat(path); err != nil {
		report := must.Get(VerifyMissing(path, Evidence{}))(t)
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

// whileIdle calls f while no goroutine commits: that of the timer may.
func whileIdle(t testing.TB, l *Log, f func()) {
	t.Helper()
	poll(t, "commits do not end", func() bool {
		l.writer.mu.Lock()
		defer l.writer.mu.Unlock()
		if l.writer.leading {
			return false
		}
		f()
		return true
	})
}

// poll waits until ok reports true, and fails with what if it does not in time.
func poll(t testing.TB, what string, ok func() bool) {
	t.Helper()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for timeout := time.After(patience); !ok(); {
		select {
		case <-ticker.C:
		case <-timeout:
			t.Fatal(what)
		}
	}
}
