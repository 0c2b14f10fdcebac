package audit

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/audit/internal/chain"
	"github.com/ALRubinger/aileron/audit/internal/table"
)

// TestVerifyFindsAnIndexThatHidesRows forges a record: its checksums and its hash fit.
func TestVerifyFindsAnIndexThatHidesRows(t *testing.T) {
	path, rows := indexedLog(t, 1)
	completeIndex(t, path)
	hidden := rows[table.BlockRows+77]
	x, err := table.WriteIndex(path)
	if err != nil {
		t.Fatal(err)
	}
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
	if err := x.Store(b); err != nil {
		t.Fatal(err)
	}
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
	if _, err := l.db.SQL().Exec(dropTriggers + "DELETE FROM events WHERE seq = 5000"); err != nil {
		t.Fatal(err)
	}
	for n := range int64(3) {
		if err := l.db.IndexBlock(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	if left := l.db.Unindexed(t.Context()); len(left) > 0 {
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

// TestASessionKeepsTheIndex commits rows as a session does, from one process and from two.
func TestASessionKeepsTheIndex(t *testing.T) {
	for _, writers := range []int{1, 2} {
		t.Run(fmt.Sprint(writers), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "audit.db")
			var logs []*Log
			for range writers {
				l := openTest(t, path)
				l.index = l.db.StartIndex()
				logs = append(logs, l)
			}
			groups := make(chan []*Row, 64)
			generate(1, 2*table.BlockRows+100, groups)
			close(groups)
			i := 0
			for group := range groups {
				for part := range slices.Chunk(group, 300) {
					logs[i%writers].mustWrite(t, part)
					i++
				}
			}
			l := logs[0]
			if writers > 1 { // as its goroutine does, which may be doing it
				l.index.Close()
				logs[1].index.Close()
				l.index.CatchUp(t.Context())
			}
			if left := l.db.Unindexed(t.Context()); len(left) > 0 {
				t.Fatalf("the blocks %v have no record", left)
			}
			kept, err := os.ReadFile(table.IndexPath(path))
			if err != nil {
				t.Fatal(err)
			}
			if len(kept) != int(table.BlockAt(2)) {
				t.Errorf("the index has %d bytes, want %d", len(kept), table.BlockAt(2))
			}
			s, err := l.db.Snapshot(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			for n := range int64(2) {
				b, err := s.Build(t.Context(), n)
				if err != nil || !slices.Equal(b.Raw, kept[table.BlockAt(n):table.BlockAt(n+1)]) {
					t.Errorf("the record of block %d is not what its rows make: %v", n, err)
				}
			}
		})
	}
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
	if err := os.Chown(path, 0, -1); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("elsewhere", table.IndexPath(path)); err != nil {
		t.Fatal(err)
	}
	checkReaders(t, path, rows)
	if _, err := os.Lstat(filepath.Join(filepath.Dir(path), "elsewhere")); err == nil {
		t.Error("a link was followed")
	}
}

// TestReadersNeedNoIndex reads a log whose index cannot be a file.
func TestReadersNeedNoIndex(t *testing.T) {
	path, rows := indexedLog(t, 1)
	if err := os.Mkdir(table.IndexPath(path), 0o700); err != nil {
		t.Fatal(err)
	}
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

// BenchmarkIndexAdd measures what the index costs the writer for each row.
func BenchmarkIndexAdd(b *testing.B) {
	x, rows := indexerOf(b)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		r := rows[i%len(rows)]
		r.Seq = int64(i) + 1
		x.Add([]*Row{r})
	}
}

// indexerOf returns an indexer without a goroutine, and rows.
func indexerOf(t testing.TB) (*table.Indexer, []*Row) {
	t.Helper()
	l := openTest(t, filepath.Join(t.TempDir(), "audit.db"))
	groups := make(chan []*Row, 8)
	generate(1, 1000, groups)
	rows := <-groups
	l.mustWrite(t, rows)
	for _, r := range rows {
		r.PrevHash, r.Hash = chain.ZeroHash, chain.ZeroHash // rows of any number follow each other
	}
	return &table.Indexer{Db: l.db, Newest: -1, Due: make(chan struct{}, 1)}, rows
}

// TestTheIndexCostsARowNoAllocation: every request waits for the goroutine that calls add, or for the processor.
func TestTheIndexCostsARowNoAllocation(t *testing.T) {
	x, rows := indexerOf(t)
	x.Add(rows[:10])
	n := 10
	if got := testing.AllocsPerRun(200, func() { x.Add(rows[n : n+1]); n++ }); got > 0 || x.Filler.Next != n {
		t.Errorf("%v allocations for a row; %d of %d rows are in the block", got, x.Filler.Next, n)
	}
}
