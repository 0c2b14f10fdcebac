package audit

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/audit/internal/table"
	"github.com/ALRubinger/aileron/e2e/must"
)

func TestTheWriteAheadLogIsCheckpointedWhileRowsCome(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.db")
	l := openTest(t, path)
	before := must.Get(os.Stat(path))(t)
	for range 3 * table.CheckpointRows {
		must.Do(t, l.AppendSoon(t.Context(), Row{Event: "e", Path: strings.Repeat("p", 500)}))
	}
	poll(t, "the database does not grow: nothing was moved to it", func() bool {
		now, err := os.Stat(path)
		return err == nil && now.Size() > before.Size()+table.CheckpointRows*500
	})
	if report, err := l.Verify(t.Context()); err != nil || !report.OK || report.Rows != 3*table.CheckpointRows+3 {
		t.Errorf("Verify = %+v, %v", report, err)
	}
}

// Commits that never pause keep checkpoints from restarting the write-ahead log: beyond its limit, a commit does so.
func TestTheWriteAheadLogIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.db")
	l := openTest(t, path)
	appendTest(t, l, EventSessionStarted)
	close(l.checkpoints.Due)
	l.checkpoints.Ends.Wait()
	l.checkpoints.Due = make(chan *sql.DB) // no checkpoint runs beside the commits
	const limit, row = 1 << 20, 4000
	l.checkpoints.Limit = limit
	const rounds = 4
	for range rounds * table.CheckpointRows {
		must.Do(t, l.AppendSoon(t.Context(), Row{Event: "e", Path: strings.Repeat("p", row)}))
	}
	l.flush(t.Context())
	info := must.Get(os.Stat(path + "-wal"))(t)
	// The size is checked every CheckpointRows rows, and SQLite adds to each row.
	if most := int64(limit + 2*table.CheckpointRows*row); info.Size() > most {
		t.Errorf("the write-ahead log has %d bytes after %d rows of %d, want at most %d",
			info.Size(), rounds*table.CheckpointRows, row, most)
	}
	if report, err := l.Verify(t.Context()); err != nil || !report.OK || report.Rows != rounds*(table.CheckpointRows+1)+1 {
		t.Errorf("Verify = %+v, %v", report, err)
	}
}
