package audit

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/audit/internal/table"
	"github.com/ALRubinger/aileron/e2e/must"
)

// TestVerifyFindsAnIndexThatHidesRows forges a record: its checksums and its hash fit.
func TestVerifyFindsAnIndexThatHidesRows(t *testing.T) {
	path, rows := indexedLog(t, 1)
	completeIndex(t, path)
	hidden := rows[table.BlockRows+77]
	x := must.Get(table.WriteIndex(path))(t)
	b := table.NewIndexBlock(1)
	if !x.Load(b) {
		t.Fatal("there is no record")
	}
	for n := range table.MarkColumns + 1 {
		if !x.LoadColumn(b, n) {
			t.Fatal("a column is damaged")
		}
	}
	binary.LittleEndian.PutUint32(b.Column(table.MarkID)[4*77:], 0)
	binary.LittleEndian.PutUint32(b.Column(table.MarkSession)[4*77:], 0)
	b.Seal(b.Hash)
	must.Do(t, x.Store(b))
	x.Close()
	l := openReader(t, path)
	if _, err := l.Get(t.Context(), hidden.ID); !errors.Is(err, ErrNotFound) {
		t.Fatalf("the forged record hides nothing: %v", err)
	}
	report, err := l.Verify(t.Context())
	if err != nil || report.OK || len(report.Findings) != 1 ||
		!strings.Contains(report.Why, "audit.index does not have what rows 4097 to 8192 have") {
		t.Errorf("Verify = %+v, %v", report, err)
	}
	if report.Rows != int64(len(rows)) {
		t.Errorf("the chain is whole, and Verify reports %d rows of %d", report.Rows, len(rows))
	}
	checkReaders(t, path, rows)
	if report, err = l.Verify(t.Context()); err != nil || !report.OK {
		t.Errorf("Verify, once it has written the record anew: %+v, %v", report, err)
	}
}

// TestARowThatComesBackIsListed removes a row and restores it, as a backup does: a record without it would hide it.
func TestARowThatComesBackIsListed(t *testing.T) {
	path, rows := indexedLog(t, 1)
	l := openTest(t, path)
	must.Get(l.db.SQL().Exec(dropTriggers + "DELETE FROM events WHERE seq = 5000"))(t)
	l.db.CatchUp(t.Context())
	if left, _ := l.db.Unindexed(t.Context()); len(left) > 0 {
		t.Errorf("the blocks %v have no record, and every reader would try to write it", left)
	}
	checkReaders(t, path, slices.Delete(slices.Clone(rows), 4999, 5000))
	lost := rows[4999]
	_, err := l.db.SQL().Exec("INSERT INTO events SELECT 5000, ?, ts, ?, session_id, source, decision, reason, "+
		"connector_fqn, "+
		"connector_version, tool, operation, binding, method, scheme, ?, port, path, http_version, status, "+
		"request_bytes, response_bytes, redactions, duration_us, fields, prev_hash, hash FROM events WHERE seq = 5001",
		lost.ID, string(lost.Event), "back.example")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := l.List(t.Context(), Filter{Host: "back.example"}); err != nil || len(got) != 1 {
		t.Errorf("the row that came back is not listed: %v, %v", got, err)
	}
}

// TestASessionKeepsTheIndex commits rows in a session, and in two: records are there once they rest.
func TestASessionKeepsTheIndex(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.db")
	logs := []*Log{openTest(t, path), openTest(t, path)}
	for _, l := range logs {
		l.index = l.db.StartIndex()
	}
	groups := make(chan []*Row, 64)
	generate(1, 2*table.BlockRows+100, groups)
	close(groups)
	i := 0
	for group := range groups {
		for part := range slices.Chunk(group, 300) {
			logs[i%len(logs)].mustWrite(t, part)
			i++
		}
	}
	poll(t, "complete blocks have no record", func() bool {
		left, complete := logs[0].db.Unindexed(t.Context())
		return len(left) == 0 && complete == 2
	})
}

// TestTheIndexIsOfTheOwner keeps a command of another user, such as root, from making a file that the sessions of the
// home cannot write.
func TestTheIndexIsOfTheOwner(t *testing.T) {
	path, rows := indexedLog(t, 1)
	if os.Chown(path, 12345, -1) != nil {
		t.Skip("only root can give files away")
	}
	checkReaders(t, path, rows)
	if _, err := os.Lstat(table.IndexPath(path)); err == nil {
		t.Error("it was made by a reader")
	}
	must.Do(t, os.Chown(path, 0, -1))
	must.Do(t, os.Symlink("elsewhere", table.IndexPath(path)))
	checkReaders(t, path, rows)
	if _, err := os.Lstat(filepath.Join(filepath.Dir(path), "elsewhere")); err == nil {
		t.Error("a link was followed")
	}
}

// TestReadersNeedNoIndex reads a log whose index cannot be a file.
func TestReadersNeedNoIndex(t *testing.T) {
	path, rows := indexedLog(t, 1)
	must.Do(t, os.Mkdir(table.IndexPath(path), 0o700))
	checkReaders(t, path, rows)
}

// TestASmallLogHasNoIndex: the rows of one block are read as fast without it.
func TestASmallLogHasNoIndex(t *testing.T) {
	path := history(t, t.TempDir(), "s", 20)
	l := openReader(t, path)
	if rows, err := l.List(context.Background(), Filter{Host: "host-3.s.example"}); err != nil || len(rows) != 1 {
		t.Errorf("List = %v, %v", rows, err)
	}
	if _, err := os.Lstat(table.IndexPath(path)); err == nil {
		t.Error("there is an index")
	}
}

// BenchmarkIndexBlock measures what the record of a block costs.
func BenchmarkIndexBlock(b *testing.B) {
	path := filepath.Join(b.TempDir(), "audit.db")
	largeLog(b, path, table.BlockRows)
	l := openReader(b, path)
	measure(b, "block", func() error {
		_ = os.Remove(table.IndexPath(path))
		return l.db.IndexBlock(b.Context(), 0)
	})
}
