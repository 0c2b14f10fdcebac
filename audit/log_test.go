package audit

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/ALRubinger/aileron/e2e/must"
)

func openTest(t testing.TB, path string) *Log {
	t.Helper()
	l := must.Get(Open(path, Options{}))(t)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func appendTest(t testing.TB, l *Log, event Event) Row {
	t.Helper()
	row := Row{Event: event, SessionID: "s", Host: "<h&>", Fields: map[string]any{"n": 1, "b": "<x>"}}
	r := must.Get(l.Append(context.Background(), row))(t)
	return r
}

func TestARowIsThereWhenAppendReturns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.db")
	l := openTest(t, path)
	want := appendTest(t, l, EventProxyStarted)
	reader := must.Get(OpenReader(path))(t)
	defer reader.Close()
	got, err := reader.Get(context.Background(), want.ID)
	if err != nil || got.Hash != want.Hash || got.Host != "<h&>" || got.Fields["b"] != "<x>" {
		t.Errorf("Get = %+v, %v; want %+v", got, err, want)
	}
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, want 0600", info.Mode().Perm())
	}
}

func TestTamperingIsFoundAndNamed(t *testing.T) {
	for _, c := range []struct {
		name, sql string
		seq       int64
		why       string
	}{
		{"edit", "UPDATE events SET host = 'other' WHERE seq = 3", 3, "content"},
		{"edit fields", "UPDATE events SET fields = '{}' WHERE seq = 3", 3, "content"},
		{"delete", "DELETE FROM events WHERE seq = 3", 4, "missing"},
		{"cut", "DELETE FROM events WHERE seq > 3", 4, "once had row 5"},
		{"reorder", "UPDATE events SET seq = 100 WHERE seq = 2; UPDATE events SET seq = 2 WHERE seq = 3; " +
			"UPDATE events SET seq = 3 WHERE seq = 100", 2, "prev_hash"},
		{"empty", "DELETE FROM events", 1, "once had"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "audit.db")
			l := openTest(t, path)
			for range 5 {
				appendTest(t, l, EventProxyProxied)
			}
			l.flush(t.Context())
			db := must.Get(sql.Open("sqlite", path))(t)
			must.Get(db.Exec(dropTriggers + c.sql))(t)
			db.Close()
			report, err := l.Verify(context.Background())
			if err != nil || report.OK || report.BrokenSeq != c.seq || !strings.Contains(report.Why, c.why) {
				t.Errorf("Verify = %+v, %v; want row %d, %q", report, err, c.seq, c.why)
			}
		})
	}
}

func TestARemovedDatabaseIsMadeAnew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.db")
	l := openTest(t, path)
	appendTest(t, l, EventSessionStarted)
	for _, f := range []string{"", "-wal", "-shm"} {
		_ = os.Remove(path + f)
	}
	appendTest(t, l, EventProxyStarted)
	report, err := l.Verify(context.Background())
	if err != nil || report.OK {
		t.Errorf("Verify = %+v, %v; want the cut to be found", report, err)
	}
}

func TestFollowSeesEveryRowOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.db")
	l := openTest(t, path)
	appendTest(t, l, "a")
	appendTest(t, l, "b")
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	rows := make(chan Row, 8)
	ended := make(chan error, 1)
	go func() {
		ended <- l.Follow(ctx, Filter{Limit: 1, Newest: true}, func(r Row) error { rows <- r; return nil })
	}()
	if got := (<-rows).Event; got != "b" {
		t.Fatalf("first %q, want b", got)
	}
	appendTest(t, l, "c")
	appendTest(t, l, "d")
	for _, want := range []Event{"c", "d"} {
		if got := (<-rows).Event; got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("Follow = %v, want nil", err)
	}
}

func TestARowIsFoundByItsID(t *testing.T) {
	l := openTest(t, filepath.Join(t.TempDir(), "audit.db"))
	start := time.Now().Add(-time.Hour)
	var ids []string
	for i := range 300 { // the clock is set back once
		at := start.Add(time.Duration(i) * time.Second)
		if i > 200 {
			at = at.Add(-2 * time.Hour)
		}
		id := must.Get(ulid.New(ulid.Timestamp(at), rand.Reader))(t)
		r := must.Get(l.Append(t.Context(), Row{ID: id.String(), TS: at, Event: "e"}))(t)
		ids = append(ids, r.ID)
	}
	for i, id := range ids {
		if r, err := l.Get(t.Context(), id); err != nil || r.Seq != int64(i+1) {
			t.Errorf("Get(%s) = row %d, %v; want %d", id, r.Seq, err, i+1)
		}
	}
	for _, id := range []string{NewID(), "", "x", strings.Repeat("Z", 26)} {
		if _, err := l.Get(t.Context(), id); !errors.Is(err, ErrNotFound) {
			t.Errorf("Get(%q) = %v, want ErrNotFound", id, err)
		}
	}
}

// Whatever replaces the database, rows wait for a valid one and no caller waits for ever.
func TestADatabaseReplacedByGarbageIsUnavailableAndRecovers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.db")
	l := openTest(t, path)
	appendTest(t, l, EventSessionStarted)
	for _, f := range []string{"", "-wal", "-shm"} {
		_ = os.Remove(path + f)
	}
	must.Do(t, os.WriteFile(path, []byte(strings.Repeat("this is no database. ", 500)), 0o600))
	must.Do(t, l.AppendSoon(t.Context(), Row{Event: "soon"}))
	for range 3 {
		if _, err := l.Append(t.Context(), Row{Event: EventProxyStarted}); !errors.Is(err, ErrUnavailable) {
			t.Fatalf("Append = %v, want ErrUnavailable", err)
		}
	}
	must.Do(t, os.Remove(path))
	appendTest(t, l, EventProxyStarted)
	rows, err := l.List(t.Context(), Filter{})
	if err != nil || len(rows) != 3 || rows[0].Event != EventBroken || rows[1].Event != "soon" {
		t.Errorf("List returns %d rows, %v; want what was lost, the deferred one and the last", len(rows), err)
	}
}
