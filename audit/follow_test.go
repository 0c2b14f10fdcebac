package audit

import (
	"bytes"
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit/internal/follow"
	"github.com/ALRubinger/aileron/e2e/must"
)

// following is a running Follow.
type following struct {
	t       *testing.T
	rows    chan Row
	notices chan Notice
	ended   chan error
	cancel  context.CancelFunc
	shown   map[string]int64 // by hash
}

func startFollow(t *testing.T, path string, filter Filter) *following {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	f := &following{t: t, rows: make(chan Row, 4096), notices: make(chan Notice, 64), ended: make(chan error, 1),
		cancel: cancel, shown: map[string]int64{}}
	go func() {
		f.ended <- Follow(ctx, path, filter, func(r Row) error { f.rows <- r; return nil }, func(n Notice) { f.notices <- n })
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-f.ended; err != nil {
			t.Errorf("Follow = %v", err)
		}
	})
	return f
}

// until receives rows up to the one with the hash, and checks that none comes twice.
func (f *following) until(hash string) (rows []Row) {
	f.t.Helper()
	timeout := time.After(patience)
	for {
		select {
		case r := <-f.rows:
			if seq, twice := f.shown[r.Hash]; twice {
				f.t.Fatalf("row %d is shown twice", seq)
			}
			f.shown[r.Hash] = r.Seq
			if rows = append(rows, r); r.Hash == hash {
				return rows
			}
		case <-timeout:
			f.t.Fatalf("%d rows came, and not the last one; notices: %d", len(rows), len(f.notices))
		}
	}
}

// noticed waits for a notice that contains text.
func (f *following) noticed(text string) Notice {
	f.t.Helper()
	timeout := time.After(patience)
	for {
		select {
		case n := <-f.notices:
			if strings.Contains(n.Text, text) {
				return n
			}
		case <-timeout:
			f.t.Fatalf("no notice has %q", text)
		}
	}
}

// replacement replaces a log with ten rows by another one; older is a copy from when it had five.
type replacement struct {
	name   string
	do     func(t *testing.T, home, older string)
	notice string
}

func replacements() []replacement {
	sides := []string{"audit.db-wal", "audit.db-shm"}
	away := func(t *testing.T, home, _ string) {
		for _, name := range append(sides, databaseName) {
			if err := os.Rename(filepath.Join(home, name), filepath.Join(home, "kept"+name)); err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
		}
	}
	return []replacement{
		{"renamed and made anew", away, "was replaced"},
		{"removed and made anew", func(t *testing.T, home, _ string) {
			remove(t, home, append(sides, databaseName)...)
		}, "was replaced"},
		{"another home's by rename", func(t *testing.T, home, _ string) {
			dir := t.TempDir()
			from := history(t, dir, "other", 30)
			away(t, home, "")
			must.Do(t, os.Rename(from, filepath.Join(home, databaseName)))
		}, "was replaced"},
		{"older copy by rename", func(t *testing.T, home, older string) {
			replaceFiles(t, older, home, databaseName)
		}, "was replaced"},
		{"older rows in place", func(t *testing.T, home, _ string) {
			execSQL(t, filepath.Join(home, databaseName), "DELETE FROM events WHERE seq > 5")
		}, "does not have row 10 any more"},
		{"heads and all", func(t *testing.T, home, _ string) {
			remove(t, home, append(sides, databaseName, headName, witnessName)...)
		}, "was replaced"},
	}
}

// Follow continues in a log that replaces another, whatever its rows are numbered: no row is shown twice, none is
// left out, and the user gets a notice.
func TestFollowGoesOnInAReplacedLog(t *testing.T) {
	for _, w := range replacements() {
		for _, filter := range []Filter{
			{}, {Session: "mine"}, {Event: EventProxyProxied, Decision: DecisionProxied, Limit: 2, Newest: true},
		} {
			t.Run(w.name, func(t *testing.T) {
				home, older := t.TempDir(), t.TempDir()
				path := history(t, home, "mine", 5)
				copyFile(t, path, filepath.Join(older, databaseName))
				history(t, home, "mine", 4)
				f := startFollow(t, path, filter)
				before, _ := all(t, path)
				l := openSession(t, path, "mine")
				last := appendNumbered(t, l, "mine", 9)
				closeLog(t, l)
				f.until(last.Hash)

				w.do(t, home, older)
				history(t, home, "noise", 3)
				l = openSession(t, path, "mine")
				for i := range 6 {
					last = appendNumbered(t, l, "mine", 100+i)
				}
				closeLog(t, l)
				got := f.until(last.Hash)
				f.noticed(w.notice)

				old := map[string]bool{}
				for _, r := range before {
					old[r.Hash] = true
				}
				rows, _ := all(t, path)
				var want []string
				for _, r := range rows {
					mine := filter.Session == "" || r.SessionID == "mine"
					if !old[r.Hash] && mine && (filter.Event == "" || r.Event == filter.Event) {
						want = append(want, r.Hash)
					}
				}
				if len(got) != len(want) {
					t.Fatalf("%d rows are shown after it, want %d", len(got), len(want))
				}
				for i, r := range got {
					if r.Hash != want[i] {
						t.Errorf("row %d is shown as number %d", r.Seq, i)
					}
				}
			})
		}
	}
}

// emptyWAL moves all rows of the write-ahead log to the database. A log that was closed while Follow was reading may
// have left some there.
func emptyWAL(t *testing.T, path string) {
	t.Helper()
	db := must.Get(sql.Open("sqlite", path))(t)
	defer db.Close()
	poll(t, "the write-ahead log is not emptied", func() bool {
		var busy, frames, moved int
		err := db.QueryRow("PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &frames, &moved)
		return err == nil && busy == 0
	})
}

// The rows of a log that is moved away for a while are not shown again when it returns, nor are those written
// meanwhile.
func TestFollowShowsNothingTwiceWhenALogComesBack(t *testing.T) {
	home := t.TempDir()
	path := history(t, home, "first", 20)
	first, _ := all(t, path)
	f := startFollow(t, path, Filter{})
	f.until(first[19].Hash)
	away := t.TempDir()
	for _, turn := range []string{"a", "b", "c"} {
		emptyWAL(t, path)
		for _, name := range []string{databaseName, headName, witnessName} {
			must.Do(t, os.Rename(filepath.Join(home, name), filepath.Join(away, name)))
		}
		remove(t, home, "audit.db-wal", "audit.db-shm")
		f.noticed("was removed: waiting for a new one")
		meanwhile, _ := all(t, history(t, home, turn, 4))
		f.until(meanwhile[3].Hash)
		replaceFiles(t, away, home, databaseName, headName, witnessName)
		now, _ := all(t, history(t, home, "first", 1))
		if rows := f.until(now[len(now)-1].Hash); len(rows) != 1 {
			t.Errorf("the rows %v are shown, want the new one", rows)
		}
	}
}

// A log that cannot be read for a while is reported once, and followed again afterwards.
func TestFollowWaitsForALogThatCanBeRead(t *testing.T) {
	home := t.TempDir()
	path := history(t, home, "first", 20)
	rows, _ := all(t, path)
	f := startFollow(t, path, Filter{})
	f.until(rows[19].Hash)
	raw := must.Get(os.ReadFile(path))(t)
	remove(t, home, "audit.db-wal", "audit.db-shm")
	must.Do(t, os.WriteFile(path, bytes.Repeat([]byte("no database "), len(raw)/12), 0o600))
	if n := f.noticed("audit.db cannot be read"); !IsDamaged(n.Err) {
		t.Errorf("the notice is %+v, want a damaged database", n)
	}
	must.Do(t, os.WriteFile(path, raw, 0o600))
	now, _ := all(t, history(t, home, "second", 3))
	if rows := f.until(now[22].Hash); len(rows) != 3 {
		t.Errorf("%d rows are shown, want 3", len(rows))
	}
	if n := len(f.notices); n > 1 {
		t.Errorf("%d more notices for one reason", n)
	}
}

// A clock that was set back hides no row.
func TestFollowShowsRowsOfAnEarlierClock(t *testing.T) {
	path := history(t, t.TempDir(), "first", 3)
	f := startFollow(t, path, Filter{Limit: 1, Newest: true})
	<-f.rows
	l := openSession(t, path, "second")
	defer l.Close()
	for i := range 2 * follow.Chunk {
		r := Row{Event: EventProxyProxied, TS: time.Now().Add(-time.Duration(i) * time.Hour), Status: i}
		must.Do(t, l.AppendSoon(t.Context(), r))
	}
	l.flush(t.Context())
	rows, _ := all(t, path)
	if got := f.until(rows[len(rows)-1].Hash); len(got) != 2*follow.Chunk {
		t.Errorf("%d rows are shown, want %d", len(got), 2*follow.Chunk)
	}
}
