package audit

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/audit/internal/chain"
	"github.com/ALRubinger/aileron/audit/internal/journal"
	"github.com/ALRubinger/aileron/e2e/must"
)

// A bit that was flipped anywhere is found: the rows before it are in the log, and the rest is kept as evidence.
func TestAFlippedBitOfAJournalIsEvidence(t *testing.T) {
	path, session := filepath.Join(t.TempDir(), databaseName), NewID()
	const rows = 3
	file := deadJournal(t, path, session, rows)
	raw := must.Get(os.ReadFile(file))(t)
	starts := frameStarts(t, raw)
	for at := journal.Start; at < starts[rows]; at++ {
		flipped := bytes.Clone(raw)
		flipped[at] ^= 1 << (at % 8)
		want := 0
		for _, end := range starts[1:] {
			if end <= at {
				want++
			}
		}
		// The length of the last frame is all that tells a torn frame from a changed one.
		last := at >= starts[rows-1]+4 && at < starts[rows-1]+journal.FrameHead
		if n, err := readAll(file, flipped); n != want || !errors.Is(err, journal.ErrNoFrame) && !last {
			t.Fatalf("flipped at %d: %d rows, %v; want %d and evidence", at, n, err, want)
		}
	}
	raw[starts[1]+100] ^= 4
	must.Do(t, os.WriteFile(file, raw, 0o600))
	for range 2 { // reported once
		closeLog(t, openSession(t, path, ""))
	}
	got, report := all(t, path)
	if len(got) != 3 || got[2].Event != EventBroken || got[2].Reason != chain.ReasonJournalChanged ||
		got[2].Fields["file"] != filepath.Base(file) || got[2].Fields["offset"] != float64(starts[1]) {
		t.Fatalf("%d rows, the last is %+v", len(got), got[len(got)-1])
	}
	aside := fmt.Sprint(got[2].Fields["kept_as"])
	if report.OK || !strings.Contains(report.Why, aside) {
		t.Errorf("Verify = %+v", report)
	}
	if kept, err := os.ReadFile(filepath.Join(filepath.Dir(path), aside)); err != nil || !bytes.Equal(kept, raw) {
		t.Errorf("what is kept aside has %d bytes, %v", len(kept), err)
	}
}

// A beginning that no session wrote is evidence too.
func TestAForeignJournalIsKeptAside(t *testing.T) {
	path := filepath.Join(t.TempDir(), databaseName)
	for _, at := range []int{2, journal.MarkAt + 3, journal.Start - 5} {
		file := deadJournal(t, path, NewID(), 2)
		raw := must.Get(os.ReadFile(file))(t)
		raw[at] ^= 1
		must.Do(t, os.WriteFile(file, raw, 0o600))
		closeLog(t, openSession(t, path, ""))
		rows, _ := all(t, path)
		last := rows[len(rows)-1]
		if last.Reason != chain.ReasonJournalChanged || !strings.Contains(fmt.Sprint(last.Fields["found"]), "its beginning") {
			t.Errorf("flipped at %d: the last row is %+v", at, last)
		}
		if left, _ := journal.Beside(path); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	}
}

// The journal of a killed session that is gone is reported, once.
func TestAMissingJournalOfAKilledSessionIsReported(t *testing.T) {
	path := filepath.Join(t.TempDir(), databaseName)
	file := deadJournal(t, path, NewID(), 2)
	must.Do(t, os.Remove(file))
	for range 2 {
		closeLog(t, openSession(t, path, ""))
	}
	rows, report := all(t, path)
	if len(rows) != 2 || rows[1].Reason != chain.ReasonJournalChanged ||
		rows[1].Fields["found"] != chain.FoundMissing || report.OK {
		t.Errorf("%d rows, the last is %+v; Verify = %+v", len(rows), rows[len(rows)-1], report)
	}
}

// A journal that is removed, replaced or changed while its session writes it is reported; rows that the session can
// still read are not lost.
func TestAJournalThatIsChangedUnderItsSessionIsReported(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(file string) error
		kept int // rows of three
	}{
		{"removed", os.Remove, 3},
		{"replaced", func(file string) error {
			return errors.Join(os.Remove(file), os.WriteFile(file, []byte("another"), 0o600))
		}, 3},
		{"changed", func(file string) error {
			f, err := os.OpenFile(file, os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			_, err = f.WriteAt([]byte("xyz"), journal.Start+300)
			return errors.Join(err, f.Close())
		}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			path, session := filepath.Join(t.TempDir(), databaseName), NewID()
			reported := make(chan Row, 4)
			l, err := Open(path, Options{Session: session, OnBroken: func(r Row) { reported <- r }})
			if err != nil {
				t.Fatal(err)
			}
			appendNumbered(t, l, session, 0)
			l.flush(t.Context())
			l.timer.Stop()
			l.armed.Store(true)
			for i := range 3 {
				appendNumbered(t, l, session, 1+i)
			}
			name := l.journal.Name()
			if c.name == "changed" {
				l.journal.Mu.Lock()
				at := l.journal.Folded
				l.journal.Mu.Unlock()
				c.do = func(file string) error {
					f, err := os.OpenFile(file, os.O_WRONLY, 0)
					if err != nil {
						return err
					}
					_, err = f.WriteAt([]byte("xyz"), at+100)
					return errors.Join(err, f.Close())
				}
			}
			must.Do(t, c.do(l.journal.Path))
			l.flush(t.Context())
			if r := next(t, reported, "the report"); r.Reason != chain.ReasonJournalChanged || r.Fields["file"] != name {
				t.Errorf("reported: %+v", r)
			}
			appendNumbered(t, l, session, 9) // the session goes on
			err = l.Close()
			var lost *LostError
			if (err != nil) != (c.kept == 0) || errors.As(err, &lost) && lost.Lost != 3 {
				t.Errorf("Close = %v", err)
			}
			rows, report := all(t, path)
			if c.name == "replaced" { // the other file is reported by itself
				rows = rows[:len(rows)-1]
			}
			if len(rows) != 3+c.kept || report.OK || len(reported) > 0 {
				t.Errorf("%d rows, %d more reports, Verify = %+v", len(rows), len(reported), report)
			}
			closeLog(t, openSession(t, path, ""))
			if again, _ := all(t, path); c.name == "removed" && len(again) != len(rows) {
				t.Errorf("reported again: %d rows, then %d", len(rows), len(again))
			}
		})
	}
}
