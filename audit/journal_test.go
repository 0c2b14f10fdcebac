package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit/internal/chain"
	"github.com/ALRubinger/aileron/audit/internal/journal"
	"github.com/ALRubinger/aileron/audit/internal/table"
	"github.com/ALRubinger/aileron/e2e/must"
)

// deadJournal writes n rows as a session that is killed before it folds them, and returns its journal.
func deadJournal(t testing.TB, path, session string, n int) (file string) {
	t.Helper()
	l := openSession(t, path, session)
	must.Get(l.Append(t.Context(), Row{Event: EventSessionStarted, SessionID: session}))(t)
	l.timer.Stop()
	l.armed.Store(true) // no fold begins by itself
	for i := range n {
		r := outcomeOf(session, i)
		r.Host = fmt.Sprintf("hé<&>-%d.example", i) // with escapes
		must.Do(t, l.AppendSoon(t.Context(), r))
	}
	// What a kill leaves: the file as it is, without its lock.
	raw := must.Get(os.ReadFile(l.journal.Path))(t)
	file = l.journal.Path
	must.Do(t, os.Rename(file, file+".moved"))
	l.health.Close()
	l.checkpoints.Stop()
	l.tx.Close()
	_ = l.db.SQL().Close()
	_ = l.journal.File.Close()
	_ = os.Remove(file + ".moved")
	must.Do(t, os.WriteFile(file, raw, 0o600))
	return file
}

// frameStarts returns where the frames of a journal begin, and where the last one ends.
func frameStarts(t testing.TB, raw []byte) (starts []int) {
	t.Helper()
	r := journal.FrameReader{File: bytes.NewReader(raw), At: journal.Start, End: int64(len(raw))}
	for {
		starts = append(starts, int(r.At))
		if _, err := r.Next(); err != nil {
			return starts
		}
	}
}

// A journal that a killed session left is folded once, whole frames only, wherever the kill tore it.
func TestWholeFramesOfAKilledSessionAreFolded(t *testing.T) {
	path, session := filepath.Join(t.TempDir(), databaseName), NewID()
	const rows = 3
	file := deadJournal(t, path, session, rows)
	raw := must.Get(os.ReadFile(file))(t)
	starts := frameStarts(t, raw)
	if len(starts) != rows+1 {
		t.Fatalf("the journal has %d frames, want %d", len(starts)-1, rows)
	}
	for cut := journal.Start; cut <= starts[rows]; cut++ {
		torn := append(bytes.Clone(raw[:cut]), make([]byte, len(raw)-cut)...)
		for _, data := range [][]byte{torn, torn[:cut]} { // zeros follow, or the file ends
			want := 0
			for _, end := range starts[1:] {
				if end <= cut {
					want++
				}
			}
			got, err := readAll(file, data)
			if got != want || !errors.Is(err, io.EOF) {
				t.Fatalf("cut at %d: %d rows, %v; want %d", cut, got, err, want)
			}
		}
	}
	half := starts[2] + 40 // in the third frame
	must.Do(t, os.WriteFile(file, append(raw[:half:half], make([]byte, len(raw)-half)...), 0o600))
	for range 2 {
		closeLog(t, openSession(t, path, ""))
	}
	got, report := all(t, path)
	if !report.OK || len(got) != 1+2 || got[2].Fields[chain.FieldSpilled] != true || got[2].Host != "hé<&>-1.example" {
		t.Errorf("%d rows, Verify = %+v", len(got), report)
	}
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("the journal is left: %v", err)
	}
}

// readAll returns how many rows a journal with the given content has, and the error behind them.
func readAll(name string, raw []byte) (n int, err error) {
	j := &journal.File{Known: plausible, Name: filepath.Base(name), Session: journal.SessionOf(name)}
	j.Frames = journal.FrameReader{File: bytes.NewReader(raw), At: journal.Start, End: int64(len(raw))}
	for {
		if _, err := j.Row(); err != nil {
			return n, err
		}
		n++
	}
}

// Rows are added once, whenever a process is killed between their commit and the removal of the journal, and however
// many fold it at the same time.
func TestAJournalIsFoldedOnce(t *testing.T) {
	for _, known := range []bool{true, false} { // to the database
		path, session := filepath.Join(t.TempDir(), databaseName), NewID()
		file := deadJournal(t, path, session, 700) // more than one transaction
		raw := must.Get(os.ReadFile(file))(t)
		for range 3 {
			var folding sync.WaitGroup
			for range 4 {
				folding.Go(func() {
					if l, err := Open(path, Options{}); err == nil {
						_ = l.Close()
					}
				})
			}
			folding.Wait()
			if err := os.WriteFile(file, raw, 0o600); err != nil { // as if it had not been removed
				t.Fatal(err)
			}
			if known {
				end := frameStarts(t, raw)
				execSQL(t, path, table.SetJournal, filepath.Base(file), end[len(end)-1], table.JournalOpen)
			}
		}
		rows, report := all(t, path)
		if !report.OK || len(rows) != 701 {
			t.Errorf("known to the database: %v: %d rows, Verify = %+v", known, len(rows), report)
		}
		for i, r := range rows[1:] {
			if r.Status != 200+i {
				t.Fatalf("row %d has the status %d: the order is lost", i, r.Status)
			}
		}
	}
}

// A clock that is set back marks the rows after it, and rows that waited for the fold are not marked.
func TestAClockThatIsSetBackIsMarkedInAJournal(t *testing.T) {
	path, session := filepath.Join(t.TempDir(), databaseName), NewID()
	l := openSession(t, path, session)
	now := time.Now()
	for _, at := range []time.Duration{0, time.Hour, 30 * time.Minute, time.Hour} {
		r := outcomeOf(session, 1)
		r.TS = now.Add(at)
		must.Get(l.Append(t.Context(), r))(t)
	}
	closeLog(t, l)
	rows, report := all(t, path)
	var marks []any
	for _, r := range rows {
		marks = append(marks, r.Fields["clock"])
	}
	if fmt.Sprint(marks) != "[<nil> <nil> backwards <nil>]" || !report.OK {
		t.Errorf("the marks are %v, Verify = %+v", marks, report)
	}
}

// Rows of several goroutines are written together, each once and in the order of its goroutine.
func TestRowsThatAreWrittenTogetherKeepTheirOrder(t *testing.T) {
	path, session := filepath.Join(t.TempDir(), databaseName), NewID()
	l := openSession(t, path, session)
	const writers, each = 16, 100
	var running sync.WaitGroup
	for w := range writers {
		running.Go(func() {
			for i := range each {
				r := Row{Event: EventProxyProxied, SessionID: session, Port: w, Status: i}
				ctx, cancel := context.WithCancel(context.Background())
				if i%7 == 0 {
					cancel() // it does not wait, and the row may be written all the same
				}
				if _, err := l.Append(ctx, r); err != nil && i%7 != 0 {
					t.Error(err)
				}
				cancel()
				r.Status += 1000
				if err := l.AppendSoon(context.Background(), r); err != nil {
					t.Error(err)
				}
			}
		})
	}
	running.Wait()
	closeLog(t, l)
	rows, report := all(t, path)
	if !report.OK || len(rows) != 2*writers*each {
		t.Fatalf("%d rows, Verify = %+v", len(rows), report)
	}
	last := map[int]int{}
	for _, r := range rows {
		turn := r.Status%1000*2 + r.Status/1000
		if turn != last[r.Port] {
			t.Fatalf("goroutine %d: row %d comes at turn %d", r.Port, turn, last[r.Port])
		}
		last[r.Port]++
	}
}

// A row costs a request next to nothing but its id.
func TestARowAllocatesItsID(t *testing.T) {
	path, session := filepath.Join(t.TempDir(), databaseName), NewID()
	l := openSession(t, path, session)
	defer l.Close()
	r := outcomeOf(session, 1)
	r.Fields, r.RequestID, r.Path = nil, NewID(), "/items"
	l.timer.Stop()
	l.armed.Store(true) // the fold is not the request's
	n := testing.AllocsPerRun(200, func() {
		r.ID = ""
		must.Get(l.Append(context.Background(), r))(t)
		must.Do(t, l.AppendSoon(context.Background(), r))
	})
	if n > 2*2 {
		t.Errorf("two rows are %v allocations, want at most 4", n)
	}
}
