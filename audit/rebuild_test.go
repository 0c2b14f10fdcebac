package audit_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/audit/internal/chain"
	"github.com/ALRubinger/aileron/audit/rebuild"
	"github.com/ALRubinger/aileron/e2e/must"
)

func idle() error { return nil }

func recoverLog(t *testing.T, path string) rebuild.Recovery {
	t.Helper()
	done := must.Get(rebuild.Recover(t.Context(), path, audit.Options{}, idle))(t)
	return done
}

// Every row that is not on an overwritten page is in the new log, unchanged. The others are listed by the event and
// by Verify, and later rows are checked like any others.
func TestRecoverCopiesEveryReadableRow(t *testing.T) {
	home := t.TempDir()
	origin := audit.LongHistory(t, home, 400)
	before, report := audit.All(t, origin)
	if !report.OK {
		t.Fatalf("Verify = %+v", report)
	}
	for _, d := range audit.Damages() {
		t.Run(d.Name, func(t *testing.T) {
			dir := t.TempDir()
			audit.ReplaceFiles(t, home, dir, "audit.db", "audit.head", ".audit.witness")
			path := filepath.Join(dir, "audit.db")
			d.Apply(t, path)
			old := must.Get(os.ReadFile(path))(t)
			done := recoverLog(t, path)
			if !done.Needed || done.Rows+done.Lost != 400 || (done.Lost == 0) != d.Spares || done.Lost > 40 {
				t.Fatalf("Recover = %+v", done)
			}
			if kept, err := os.ReadFile(filepath.Join(dir, done.Kept)); err != nil || !bytes.Equal(kept, old) {
				t.Errorf("the old file is not kept: %v", err)
			}
			audit.History(t, dir, "later", 5)
			rows, report := audit.All(t, path)
			checkRecovered(t, done, before, rows)
			if report.OK != d.Spares {
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

func checkRecovered(t *testing.T, done rebuild.Recovery, before, rows []audit.Row) {
	t.Helper()
	for i, r := range rows[:done.Rows] {
		if r.Hash != before[r.Seq-1].Hash || r.Path != before[r.Seq-1].Path || i > 0 && r.Seq <= rows[i-1].Seq {
			t.Fatalf("row %d is not the one that it was", r.Seq)
		}
	}
	event := rows[done.Rows]
	missing, _ := event.Fields["missing"].([]any)
	if event.Event != audit.EventRecovered || event.Seq != 401 || event.Fields["kept"] != done.Kept ||
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
	path := audit.LongHistory(t, running, 200)
	l := audit.OpenSession(t, path, "second")
	for i := range 20 {
		audit.AppendNumbered(t, l, "second", i)
	}
	l.Flush(t.Context())
	for _, name := range []string{"audit.db", "audit.db-wal", "audit.head", ".audit.witness"} {
		audit.CopyFile(t, filepath.Join(running, name), filepath.Join(dir, name))
	}
	audit.CloseLog(t, l)
	path = filepath.Join(dir, "audit.db")
	audit.Damages()[0].Apply(t, path)
	done := recoverLog(t, path)
	rows, _ := audit.All(t, path)
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
			path := audit.LongHistory(t, t.TempDir(), 400)
			audit.ExecSQL(t, path, w.change)
			audit.Damages()[0].Apply(t, path)
			recoverLog(t, path)
			audit.History(t, filepath.Dir(path), "later", 30)
			_, report := audit.All(t, path)
			want := strings.TrimPrefix(w.want, "row's ")
			if report.OK || !strings.Contains(audit.Whys(report), want) {
				t.Errorf("Verify = %s; want %q", audit.Whys(report), want)
			}
		})
	}
}

// A log that is in use, or that another recovery has locked, is left alone.
func TestRecoverLeavesALogInUseAlone(t *testing.T) {
	audit.Impatient(t, &chain.BusyTimeout)
	path := audit.LongHistory(t, t.TempDir(), 100)
	audit.Damages()[0].Apply(t, path)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	runs := fmt.Errorf("%w: a session runs", rebuild.ErrInUse)
	_, err = rebuild.Recover(t.Context(), path, audit.Options{}, func() error { return runs })
	if !errors.Is(err, rebuild.ErrInUse) {
		t.Errorf("Recover = %v, want %v", err, rebuild.ErrInUse)
	}
	other := must.Get(os.Open(filepath.Dir(path)))(t)
	must.Do(t, unix.Flock(int(other.Fd()), unix.LOCK_EX))
	if _, err := rebuild.Recover(t.Context(), path, audit.Options{}, idle); !errors.Is(err, rebuild.ErrInUse) {
		t.Errorf("beside another recovery: Recover = %v, want %v", err, rebuild.ErrInUse)
	}
	_ = other.Close()
	if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, before) {
		t.Errorf("the log was changed: %v", err)
	}
}

// A recovery that is killed at any step is finished by the next one, without losing further rows.
func TestRecoverAfterAnInterruptedRecovery(t *testing.T) {
	for step := range 3 {
		dir := t.TempDir()
		path := audit.LongHistory(t, dir, 200)
		audit.Damages()[0].Apply(t, path)
		steps := []func() error{
			func() error { return os.Link(path, path+".damaged-20260102T030405.000Z") },
			func() error { return os.WriteFile(path+".recovering", []byte("not all of it"), 0o600) },
			func() error { _ = os.Remove(path + "-wal"); return nil },
		}
		for _, do := range steps[:step+1] {
			must.Do(t, do())
		}
		done := recoverLog(t, path)
		kept, _ := filepath.Glob(path + ".damaged-*")
		if done.Rows+done.Lost != 200 || len(kept) != 1 || !slices.Contains(kept, filepath.Join(dir, done.Kept)) {
			t.Errorf("after step %d: Recover = %+v; the old files are %q", step, done, kept)
		}
	}
}

// A recovery of a log that was pruned does not take what was pruned for lost.
func TestALogThatWasPrunedIsRecovered(t *testing.T) {
	home, _, second := audit.AgedHome(t)
	path := filepath.Join(home, "audit.db")
	audit.MustPrune(t, path, audit.PruneQuery{Before: second})
	audit.ExecSQL(t, path, "PRAGMA wal_checkpoint(TRUNCATE)") // readers of this test are still open
	raw := must.Get(os.ReadFile(path))(t)
	copy(raw[4096:], strings.Repeat("x", 4096)) // the root of the table
	must.Do(t, os.WriteFile(path, raw, 0o600))
	done, err := rebuild.Recover(t.Context(), path, audit.Options{}, idle)
	if err != nil || !done.Needed {
		t.Fatalf("Recover = %+v, %v", done, err)
	}
	for _, gap := range done.Missing {
		var from int64
		if _, err := fmt.Sscan(strings.Split(gap, "-")[0], &from); err != nil || from <= 602 {
			t.Errorf("rows %s are lost: %v", gap, err)
		}
	}
	if done.Rows+done.Lost != 604 {
		t.Errorf("%d rows, and %d lost; there were 604", done.Rows, done.Lost)
	}
}

// A log of a newer version is left alone.
func TestRecoverLeavesALogOfANewerVersionAlone(t *testing.T) {
	path := audit.History(t, t.TempDir(), "first", 3)
	audit.ExecSQL(t, path, "PRAGMA user_version = 2")
	var foreign *audit.SchemaError
	if _, err := rebuild.Recover(t.Context(), path, audit.Options{}, idle); !errors.As(err, &foreign) {
		t.Errorf("Recover = %v, want a SchemaError", err)
	}
}
