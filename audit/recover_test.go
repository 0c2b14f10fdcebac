package audit

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/audit/internal/chain"
)

// damage overwrites a part of a database.
type damage struct {
	name   string
	pages  func(n int) []int // of a database with n pages, from 1
	fill   func(page []byte)
	spares bool // no row is on these pages
}

func noise(page []byte) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range page {
		page[i] = byte(r.Uint32())
	}
}

func damages() []damage {
	middle := func(n int) []int { return []int{n / 2, n/2 + 1, n/2 + 7} }
	return []damage{
		{"pages in the middle", middle, noise, false},
		{"pages in the middle of zeros", middle, func(p []byte) { clear(p) }, false},
		{"the last page", func(n int) []int { return []int{n} }, noise, false},
		{"the root of the table", func(int) []int { return []int{2} }, noise, true},
		{"the first page", func(int) []int { return []int{1} }, noise, true},
		{"the header", func(int) []int { return []int{1} }, func(p []byte) { copy(p, bytes.Repeat([]byte{0xa5}, 40)) }, true},
		{"the first two pages and one of rows", func(n int) []int { return []int{1, 2, n - 3} }, noise, false},
	}
}

func (d damage) apply(t *testing.T, path string) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range d.pages(len(raw) / pageSize) {
		d.fill(raw[(n-1)*pageSize : n*pageSize])
	}
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
}

func idle() error { return nil }

func recoverLog(t *testing.T, path string) Recovery {
	t.Helper()
	done, err := Recover(t.Context(), path, Options{}, idle)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

// longHistory writes rows, some of which need more than a page.
func longHistory(t *testing.T, dir string, n int) string {
	t.Helper()
	path := filepath.Join(dir, databaseName)
	l := openSession(t, path, "first")
	for i := range n {
		row := Row{
			Event: EventProxyProxied, SessionID: "first", Host: fmt.Sprintf("h%d.example", i), Port: 443 + i<<(i%20),
			Path: "/" + strings.Repeat("x", i%700), Status: 200, ResponseBytes: int64(i) << (i % 40),
			Fields: map[string]any{"request_id": NewID()},
		}
		if i%37 == 0 {
			row.Fields["hosts"] = strings.Repeat("é", 100*i)
		}
		if _, err := l.Append(t.Context(), row); err != nil {
			t.Fatal(err)
		}
	}
	closeLog(t, l)
	return path
}

// Every row that is not on an overwritten page is in the new log, unchanged. The others are listed by the event and
// by Verify, and later rows are checked like any others.
func TestRecoverCopiesEveryReadableRow(t *testing.T) {
	home := t.TempDir()
	origin := longHistory(t, home, 400)
	before, report := all(t, origin)
	if !report.OK {
		t.Fatalf("Verify = %+v", report)
	}
	for _, d := range damages() {
		t.Run(d.name, func(t *testing.T) {
			dir := t.TempDir()
			replaceFiles(t, home, dir, databaseName, headName, witnessName)
			path := filepath.Join(dir, databaseName)
			d.apply(t, path)
			old, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			done := recoverLog(t, path)
			if !done.Needed || done.Rows+done.Lost != 400 || (done.Lost == 0) != d.spares || done.Lost > 40 {
				t.Fatalf("Recover = %+v", done)
			}
			if kept, err := os.ReadFile(filepath.Join(dir, done.Kept)); err != nil || !bytes.Equal(kept, old) {
				t.Errorf("the old file is not kept: %v", err)
			}
			history(t, dir, "later", 5)
			rows, report := all(t, path)
			checkRecovered(t, done, before, rows)
			if report.OK != d.spares {
				t.Errorf("Verify = %+v", report)
			}
			for _, f := range report.Findings {
				newer := f.Seq > 401 && !strings.Contains(f.Why, "audit.broken")
				if newer || !strings.Contains(f.Why, "missing") && !strings.Contains(f.Why, "audit.head") {
					t.Errorf("Verify names %+v", f)
				}
			}
			if again := recoverLog(t, path); again.Needed {
				t.Errorf("Recover of a log that can be read = %+v", again)
			}
			kept, _ := filepath.Glob(path + ".damaged-*Z")
			if scratch, _ := filepath.Glob(path + ".recovering*"); len(scratch) > 0 || len(kept) != 1 {
				t.Errorf("the old file is kept as %q, and %q are left", kept, scratch)
			}
		})
	}
}

func checkRecovered(t *testing.T, done Recovery, before, rows []Row) {
	t.Helper()
	for i, r := range rows[:done.Rows] {
		if r.Hash != before[r.Seq-1].Hash || r.Path != before[r.Seq-1].Path || i > 0 && r.Seq <= rows[i-1].Seq {
			t.Fatalf("row %d is not the one that it was", r.Seq)
		}
	}
	event := rows[done.Rows]
	missing, _ := event.Fields["missing"].([]any)
	if event.Event != EventRecovered || event.Seq != 401 || event.Fields["kept"] != done.Kept ||
		event.Fields["lost"] != float64(done.Lost) || len(missing) != len(done.Missing) {
		t.Errorf("the row behind them is %+v", event)
	}
	later := rows[len(rows)-1]
	if later.SessionID != "later" || later.PrevHash != rows[len(rows)-2].Hash {
		t.Errorf("the last row is %+v", later)
	}
}

// Rows that are committed but not yet in the database file are recovered too.
func TestRecoverReadsTheWriteAheadLog(t *testing.T) {
	dir, running := t.TempDir(), t.TempDir()
	path := longHistory(t, running, 200)
	l := openSession(t, path, "second")
	for i := range 20 {
		appendNumbered(t, l, "second", i)
	}
	l.flush(t.Context())
	for _, name := range []string{databaseName, "audit.db-wal", headName, witnessName} {
		copyFile(t, filepath.Join(running, name), filepath.Join(dir, name))
	}
	closeLog(t, l)
	path = filepath.Join(dir, databaseName)
	damages()[0].apply(t, path)
	done := recoverLog(t, path)
	rows, _ := all(t, path)
	if done.Rows+done.Lost != 220 || done.Lost > 40 || rows[done.Rows-1].SessionID != "second" {
		t.Errorf("Recover = %+v", done)
	}
}

// A recovery hides no tampering: rows that were cut or edited before the log was damaged are found as before.
func TestRecoverHealsNoEvidence(t *testing.T) {
	for _, w := range []struct{ name, change, want string }{
		{"a cut tail", "DELETE FROM events WHERE seq > 380", "381"},
		{"a row taken out", "DELETE FROM events WHERE seq = 30", "row 30 is missing before it"},
		{"an edited row", "UPDATE events SET host = 'innocent.example' WHERE seq = 40", "row's content"},
	} {
		t.Run(w.name, func(t *testing.T) {
			path := longHistory(t, t.TempDir(), 400)
			execSQL(t, path, w.change)
			damages()[0].apply(t, path)
			recoverLog(t, path)
			history(t, filepath.Dir(path), "later", 30)
			_, report := all(t, path)
			want := strings.TrimPrefix(w.want, "row's ")
			if report.OK || !strings.Contains(whys(report), want) {
				t.Errorf("Verify = %s; want %q", whys(report), want)
			}
		})
	}
}

// A log that is in use, or that another recovery has locked, is left alone.
func TestRecoverLeavesALogInUseAlone(t *testing.T) {
	impatient(t, &chain.BusyTimeout)
	path := longHistory(t, t.TempDir(), 100)
	damages()[0].apply(t, path)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	runs := fmt.Errorf("%w: a session runs", ErrInUse)
	if _, err := Recover(t.Context(), path, Options{}, func() error { return runs }); !errors.Is(err, ErrInUse) {
		t.Errorf("Recover = %v, want %v", err, ErrInUse)
	}
	r := recovery{path: path}
	unlock, err := r.lock()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Recover(t.Context(), path, Options{}, idle); !errors.Is(err, ErrInUse) {
		t.Errorf("beside another recovery: Recover = %v, want %v", err, ErrInUse)
	}
	unlock()
	if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, before) {
		t.Errorf("the log was changed: %v", err)
	}
}

// A recovery that is killed at any step is finished by the next one, without losing further rows.
func TestRecoverAfterAnInterruptedRecovery(t *testing.T) {
	for step := range 3 {
		dir := t.TempDir()
		path := longHistory(t, dir, 200)
		damages()[0].apply(t, path)
		r := recovery{path: path, work: path + ".recovering"}
		steps := []func() error{r.keep, func() error { return r.copy(t.Context()) }, func() error {
			_ = os.Remove(path + "-wal")
			return nil
		}}
		for _, do := range steps[:step+1] {
			if err := do(); err != nil {
				t.Fatal(err)
			}
		}
		done := recoverLog(t, path)
		kept, _ := filepath.Glob(path + ".damaged-*")
		if done.Rows+done.Lost != 200 || len(kept) != 1 || !slices.Contains(kept, filepath.Join(dir, done.Kept)) {
			t.Errorf("after step %d: Recover = %+v; the old files are %q", step, done, kept)
		}
	}
}
