package audit

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestTheWriteAheadLogIsWorkedOffWhileRowsCome(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.db")
	l := openTest(t, path)
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 * checkpointRows {
		if err := l.AppendSoon(t.Context(), Row{Event: "e", Path: strings.Repeat("p", 500)}); err != nil {
			t.Fatal(err)
		}
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if now, err := os.Stat(path); err == nil && now.Size() > before.Size()+checkpointRows*500 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the database does not grow: nothing was moved to it")
		}
	}
	if report, err := l.Verify(t.Context()); err != nil || !report.OK || report.Rows != 3*checkpointRows {
		t.Errorf("Verify = %+v, %v", report, err)
	}
}

// Commits that never pause keep the checkpoints behind from beginning the
// write-ahead log anew: beyond its limit a commit does so.
func TestTheWriteAheadLogIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.db")
	l := openTest(t, path)
	appendTest(t, l, EventSessionStarted)
	close(l.checkpoints.due)
	l.checkpoints.ends.Wait()
	l.checkpoints.due = make(chan *sql.DB) // no checkpoint happens beside the commits
	const limit, row = 1 << 20, 4000
	l.checkpoints.limit = limit
	const rounds = 4
	for range rounds * checkpointRows {
		if err := l.AppendSoon(t.Context(), Row{Event: "e", Path: strings.Repeat("p", row)}); err != nil {
			t.Fatal(err)
		}
	}
	l.flush(t.Context())
	info, err := os.Stat(path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	// What may come before it is looked at again, with what SQLite adds to it.
	if most := int64(limit + 2*checkpointRows*row); info.Size() > most {
		t.Errorf("the write-ahead log has %d bytes after %d rows of %d, want at most %d", info.Size(), rounds*checkpointRows, row, most)
	}
	if report, err := l.Verify(t.Context()); err != nil || !report.OK || report.Rows != rounds*checkpointRows+1 {
		t.Errorf("Verify = %+v, %v", report, err)
	}
}
