package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// deadJournal writes n rows as a session that is killed before it folds them, and returns its journal.
func deadJournal(t testing.TB, path, session string, n int) (file string) {
	t.Helper()
	l := openSession(t, path, session)
	if _, err := l.Append(t.Context(), Row{Event: EventSessionStarted, SessionID: session}); err != nil {
		t.Fatal(err)
	}
	l.timer.Stop()
	l.armed.Store(true) // no fold begins by itself
	for i := range n {
		r := outcomeOf(session, i)
		r.Host = fmt.Sprintf("hé<&>-%d.example", i) // with escapes
		if err := l.AppendSoon(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	// What a kill leaves: the file as it is, without its lock.
	raw, err := os.ReadFile(l.journal.path)
	if err != nil {
		t.Fatal(err)
	}
	file = l.journal.path
	if err := os.Rename(file, file+".moved"); err != nil {
		t.Fatal(err)
	}
	l.health.close()
	l.checkpoints.stop()
	l.tx.close()
	_ = l.db.Close()
	_ = l.journal.file.Close()
	_ = os.Remove(file + ".moved")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// frameStarts returns where the frames of a journal begin, and where the last one ends.
func frameStarts(t testing.TB, raw []byte) (starts []int) {
	t.Helper()
	r := frameReader{file: bytes.NewReader(raw), at: journalStart, end: int64(len(raw))}
	for {
		starts = append(starts, int(r.at))
		if _, err := r.next(); err != nil {
			return starts
		}
	}
}

// A journal that a killed session left is folded once, whole frames only, wherever the kill tore it.
func TestWholeFramesOfAKilledSessionAreFolded(t *testing.T) {
	path, session := filepath.Join(t.TempDir(), database), NewID()
	const rows = 3
	file := deadJournal(t, path, session, rows)
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	starts := frameStarts(t, raw)
	if len(starts) != rows+1 {
		t.Fatalf("the journal has %d frames, want %d", len(starts)-1, rows)
	}
	for cut := journalStart; cut <= starts[rows]; cut++ {
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
	if err := os.WriteFile(file, append(raw[:half:half], make([]byte, len(raw)-half)...), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		closeLog(t, openSession(t, path, ""))
	}
	got, report := all(t, path)
	if !report.OK || len(got) != 1+2 || got[2].Fields[fieldSpilled] != true || got[2].Host != "hé<&>-1.example" {
		t.Errorf("%d rows, Verify = %+v", len(got), report)
	}
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("the journal is left: %v", err)
	}
}

// readAll returns how many rows a journal with the given content has, and the error behind them.
func readAll(name string, raw []byte) (n int, err error) {
	j := &journalFile{name: filepath.Base(name), session: journalSession(name)}
	j.frames = frameReader{file: bytes.NewReader(raw), at: journalStart, end: int64(len(raw))}
	for {
		if _, err := j.row(); err != nil {
			return n, err
		}
		n++
	}
}

// A bit that was flipped anywhere is found: the rows before it are in the log, and the rest is kept as evidence.
func TestAFlippedBitOfAJournalIsEvidence(t *testing.T) {
	path, session := filepath.Join(t.TempDir(), database), NewID()
	const rows = 3
	file := deadJournal(t, path, session, rows)
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	starts := frameStarts(t, raw)
	for at := journalStart; at < starts[rows]; at++ {
		flipped := bytes.Clone(raw)
		flipped[at] ^= 1 << (at % 8)
		want := 0
		for _, end := range starts[1:] {
			if end <= at {
				want++
			}
		}
		// The length of the last frame is all that tells a torn frame from a changed one.
		last := at >= starts[rows-1]+4 && at < starts[rows-1]+frameHead
		if n, err := readAll(file, flipped); n != want || !errors.Is(err, errNoFrame) && !last {
			t.Fatalf("flipped at %d: %d rows, %v; want %d and evidence", at, n, err, want)
		}
	}
	raw[starts[1]+100] ^= 4
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // reported once
		closeLog(t, openSession(t, path, ""))
	}
	got, report := all(t, path)
	if len(got) != 3 || got[2].Event != EventBroken || got[2].Reason != reasonJournalChanged ||
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
	path := filepath.Join(t.TempDir(), database)
	for _, at := range []int{2, journalMarkAt + 3, journalStart - 5} {
		file := deadJournal(t, path, NewID(), 2)
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		raw[at] ^= 1
		if err := os.WriteFile(file, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		closeLog(t, openSession(t, path, ""))
		rows, _ := all(t, path)
		last := rows[len(rows)-1]
		if last.Reason != reasonJournalChanged || !strings.Contains(fmt.Sprint(last.Fields["found"]), "its beginning") {
			t.Errorf("flipped at %d: the last row is %+v", at, last)
		}
		if left, _ := filesBeside(path, journalSession); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	}
}

// The journal of a killed session that is gone is reported, once.
func TestAMissingJournalOfAKilledSessionIsReported(t *testing.T) {
	path := filepath.Join(t.TempDir(), database)
	file := deadJournal(t, path, NewID(), 2)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		closeLog(t, openSession(t, path, ""))
	}
	rows, report := all(t, path)
	if len(rows) != 2 || rows[1].Reason != reasonJournalChanged || rows[1].Fields["found"] != foundMissing || report.OK {
		t.Errorf("%d rows, the last is %+v; Verify = %+v", len(rows), rows[len(rows)-1], report)
	}
}

// Rows are added once, whenever a process is killed between their commit and the removal of the journal, and however
// many fold it at the same time.
func TestAJournalIsFoldedOnce(t *testing.T) {
	for _, known := range []bool{true, false} { // to the database
		path, session := filepath.Join(t.TempDir(), database), NewID()
		file := deadJournal(t, path, session, 700) // more than one transaction
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
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
				execSQL(t, path, setJournal, filepath.Base(file), end[len(end)-1], journalOpen)
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
			_, err = f.WriteAt([]byte("xyz"), journalStart+300)
			return errors.Join(err, f.Close())
		}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			path, session := filepath.Join(t.TempDir(), database), NewID()
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
			name := l.journal.name()
			if c.name == "changed" {
				l.journal.mu.Lock()
				at := l.journal.folded
				l.journal.mu.Unlock()
				c.do = func(file string) error {
					f, err := os.OpenFile(file, os.O_WRONLY, 0)
					if err != nil {
						return err
					}
					_, err = f.WriteAt([]byte("xyz"), at+100)
					return errors.Join(err, f.Close())
				}
			}
			if err := c.do(l.journal.path); err != nil {
				t.Fatal(err)
			}
			l.flush(t.Context())
			if r := next(t, reported, "the report"); r.Reason != reasonJournalChanged || r.Fields["file"] != name {
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

// On a full disk no intent is accepted; what has begun is, and the end of the session to the last byte.
func TestAFullDiskTakesWhatHasBegun(t *testing.T) {
	path, session := filepath.Join(t.TempDir(), database), NewID()
	l := openSession(t, path, session)
	appendNumbered(t, l, session, 0)
	l.flush(t.Context())
	refuse(t, path, "1")
	j := l.journal
	j.mu.Lock()
	sealed := min(j.allocated, j.written+journalAhead)
	j.allocated, j.allocate = sealed, func(*os.File, int64, int64) error { return unix.ENOSPC }
	j.mu.Unlock()
	intent := outcomeOf(session, 1)
	intent.Event, intent.Decision = EventProxyStarted, ""
	if _, err := l.Append(t.Context(), intent); !errors.Is(err, ErrUnavailable) {
		t.Fatalf("Append of an intent = %v", err)
	}
	outcomes := 0
	for i := range 500 {
		r := outcomeOf(session, i)
		r.Path = "/" + strings.Repeat("x", 1000)
		r.begin()
		if l.journal.add(t.Context(), &r, true) != nil {
			break
		}
		outcomes++
	}
	for { // the rest, by rows that are smaller than the last one
		r := Row{Event: EventVaultLocked, SessionID: session}
		r.begin()
		if l.journal.add(t.Context(), &r, true) != nil {
			break
		}
		outcomes++
	}
	if outcomes < 30 {
		t.Errorf("%d outcomes are kept", outcomes)
	}
	ended := Row{Event: EventSessionEnded, SessionID: session, Source: SourceLauncher}
	if err := l.AppendSoon(t.Context(), ended); err != nil {
		t.Fatal(err)
	}
	if j.written > sealed {
		t.Errorf("%d bytes are written to %d that are allocated", j.written, sealed)
	}
	var lost *LostError
	if err := l.Close(); !errors.As(err, &lost) || lost.Kept != outcomes+1 || lost.Lost != 0 {
		t.Fatalf("Close = %v; want %d rows kept", err, outcomes+1)
	}
	admit(t, path)
	closeLog(t, openSession(t, path, ""))
	rows, report := all(t, path)
	if !report.OK || len(rows) != 2+outcomes || rows[len(rows)-1].Event != EventSessionEnded {
		t.Errorf("%d rows, Verify = %+v", len(rows), report)
	}
}

// Beyond a bound of unfolded rows no intent is accepted, and a bound below it makes intents wait for the fold.
func TestUnfoldedRowsAreBounded(t *testing.T) {
	path, session := filepath.Join(t.TempDir(), database), NewID()
	l := openSession(t, path, session)
	defer l.Close()
	l.journal.foldFirst, l.journal.maxUnfolded = 20_000, 60_000
	intent := outcomeOf(session, 1)
	intent.Event, intent.Decision = EventProxyStarted, ""
	for range 2000 {
		if _, err := l.Append(t.Context(), intent); err != nil {
			t.Fatal(err)
		}
	}
	l.flush(t.Context())
	l.journal.foldFirst = 1 << 30
	l.timer.Stop()
	l.armed.Store(true)
	var err error
	for range 2000 {
		if err = l.journal.add(t.Context(), &intent, true); err != nil {
			break
		}
	}
	if !errors.Is(err, errUnfolded) {
		t.Errorf("add = %v, want %v", err, errUnfolded)
	}
}

// Space of folded frames is given back.
func TestALongSessionsJournalIsBounded(t *testing.T) {
	path, session := filepath.Join(t.TempDir(), database), NewID()
	l := openSession(t, path, session)
	defer l.Close()
	for i := range 20 {
		for range 300 {
			if err := l.AppendSoon(t.Context(), outcomeOf(session, i)); err != nil {
				t.Fatal(err)
			}
		}
		l.flush(t.Context())
	}
	if size := allocated(l.journal.file); size > 3*journalStep && l.journal.punched > journalStart {
		t.Errorf("after %d bytes the journal has %d on the disk", l.journal.written, size)
	}
}

// A clock that is set back marks the rows after it, and rows that waited for the fold are not marked.
func TestAClockThatIsSetBackIsMarkedInAJournal(t *testing.T) {
	path, session := filepath.Join(t.TempDir(), database), NewID()
	l := openSession(t, path, session)
	now := time.Now()
	for _, at := range []time.Duration{0, time.Hour, 30 * time.Minute, time.Hour} {
		r := outcomeOf(session, 1)
		r.TS = now.Add(at)
		if _, err := l.Append(t.Context(), r); err != nil {
			t.Fatal(err)
		}
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

// A reader lacks nothing of running sessions, nor of one that was killed.
func TestAReaderSeesWhatIsInJournals(t *testing.T) {
	path := filepath.Join(t.TempDir(), database)
	deadJournal(t, path, NewID(), 5)
	session := NewID()
	l := openSession(t, path, session)
	defer l.Close()
	for i := range 100 {
		want := appendNumbered(t, l, session, i)
		reader, err := OpenReader(path)
		if err != nil {
			t.Fatal(err)
		}
		got, err := reader.Get(t.Context(), want.ID)
		if err != nil || got.Host != want.Host || reader.Unfolded() != 0 {
			t.Fatalf("Get = %+v, %v; %d rows are not folded", got, err, reader.Unfolded())
		}
		_ = reader.Close()
	}
	if rows, report := all(t, path); len(rows) != 1+5+100 || !report.OK {
		t.Errorf("%d rows, Verify = %+v", len(rows), report)
	}
}

// What a killed session left and cannot be added is counted, and changes nothing.
func TestAReaderOfALogThatCannotBeWrittenCountsWhatItLacks(t *testing.T) {
	path := filepath.Join(t.TempDir(), database)
	deadJournal(t, path, NewID(), 5)
	refuse(t, path, "1")
	for range 2 {
		reader, err := OpenReader(path)
		if err != nil {
			t.Fatal(err)
		}
		report, err := reader.Verify(t.Context())
		if reader.Unfolded() != 5 || err != nil || !report.OK || report.Spilled != 5 {
			t.Errorf("%d rows are not folded, Verify = %+v, %v; want 5", reader.Unfolded(), report, err)
		}
		_ = reader.Close()
	}
}

// Rows of several goroutines are written together, each once and in the order of its goroutine.
func TestRowsThatAreWrittenTogetherKeepTheirOrder(t *testing.T) {
	path, session := filepath.Join(t.TempDir(), database), NewID()
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
	path, session := filepath.Join(t.TempDir(), database), NewID()
	l := openSession(t, path, session)
	defer l.Close()
	r := outcomeOf(session, 1)
	r.Fields, r.RequestID, r.Path = nil, NewID(), "/items"
	l.timer.Stop()
	l.armed.Store(true) // the fold is not the request's
	n := testing.AllocsPerRun(200, func() {
		r.ID = ""
		if _, err := l.Append(context.Background(), r); err != nil {
			t.Fatal(err)
		}
		if err := l.AppendSoon(context.Background(), r); err != nil {
			t.Fatal(err)
		}
	})
	if n > 2*2 {
		t.Errorf("two rows are %v allocations, want at most 4", n)
	}
}
