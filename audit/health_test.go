package audit

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit/internal/table"
	"github.com/ALRubinger/aileron/e2e/must"
)

// eventually requests checks until ok reports true.
func eventually(t *testing.T, h *table.Health, what string, ok func() bool) {
	t.Helper()
	poll(t, what, func() bool {
		select {
		case h.Now <- struct{}{}:
		default:
		}
		return ok()
	})
}

// Pages that are overwritten under a session stop its requests, but not its outcomes. The row is reported once, and
// requests are served again when the pages are restored.
func TestDamageUnderASessionRefusesIntents(t *testing.T) {
	for _, d := range damages() {
		t.Run(d.Name, func(t *testing.T) {
			path := longHistory(t, t.TempDir(), 400)
			reports := make(chan *DamageError, 16)
			l, err := Open(path, Options{Session: NewID(), OnDamage: func(d *DamageError) { reports <- d }})
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			if err := l.Damage(); err != nil {
				t.Fatalf("Damage = %v", err)
			}
			intent := func() error {
				_, err := l.Append(t.Context(), Row{Event: EventProxyStarted, Host: "a.example"})
				return err
			}
			must.Do(t, intent())
			l.flush(t.Context())
			emptyWAL(t, path)
			whole := must.Get(os.ReadFile(path))(t)
			d.Apply(t, path)
			eventually(t, l.health, "requests go on", func() bool { return l.Damage() != nil })
			var found *DamageError
			if err := intent(); !errors.Is(err, ErrUnavailable) || !errors.As(err, &found) || found.Seq > 402 {
				t.Fatalf("Append of an intent = %v; want %v for the damage", err, ErrUnavailable)
			}
			if named := found.Seq > 0; named != (d.pages(10)[0] > 2) {
				t.Errorf("the error is %v; it names a row: %v", found, named)
			}
			repair(t, path, whole)
			eventually(t, l.health, "requests do not go on", func() bool { return l.Damage() == nil && intent() == nil })
			// A report comes a moment after what it reports.
			first, last := next(t, reports, "the damage is not reported"), next(t, reports, "its end is not reported")
			if first == nil || last != nil || len(reports) > 0 {
				t.Errorf("the reports are %v, %v and %d more, want one of the damage and one of its end", first, last,
					len(reports))
			}
		})
	}
}

// repair writes a file as it was, over what was done to it: a look at it meanwhile sees nothing else.
func repair(t *testing.T, path string, whole []byte) {
	t.Helper()
	f := must.Get(os.OpenFile(path, os.O_WRONLY, 0))(t)
	defer f.Close()
	must.Get(f.WriteAt(whole, 0))(t)
	must.Do(t, f.Truncate(int64(len(whole))))
}

// Outcomes of requests under way are committed as long as the database accepts them.
func TestOutcomesAreCommittedToADamagedLog(t *testing.T) {
	path := longHistory(t, t.TempDir(), 400)
	damages()[0].Apply(t, path)
	l := must.Get(Open(path, Options{Session: NewID()}))(t)
	if err := l.Damage(); !IsDamaged(err) {
		t.Fatalf("Damage = %v at the start", err)
	}
	last := appendNumbered(t, l, "first", 1)
	closeLog(t, l)
	if raw, err := os.ReadFile(path); err != nil || !bytes.Contains(raw, []byte(last.Hash)) {
		t.Errorf("the outcome is not in the log: %v", err)
	}
}

// A check is bounded, and successive checks cover every row.
func TestALookReadsABoundedPartOfTheLog(t *testing.T) {
	path := longHistory(t, t.TempDir(), 10)
	l := must.Get(Open(path, Options{}))(t)
	for i := range 3 * table.HealthChunk {
		must.Do(t, l.AppendSoon(t.Context(), Row{Event: EventProxyProxied, Status: i}))
	}
	closeLog(t, l)
	h := table.Health{Path: path}
	passes := 0
	for range 8 { // at least a chunk each
		before := h.Cursor
		must.Do(t, h.ReadPart(t.Context()))
		if h.Cursor < before || h.Cursor == 0 {
			passes++
		}
	}
	if passes == 0 || h.Passes.Load() == 0 {
		t.Errorf("%d passes; it stands at row %d", passes, h.Cursor)
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(path), "audit.db")); err != nil {
		t.Error(err)
	}
}

// A log whose files do not change is not read over and over.
func TestALogAtRestIsNotReadAgain(t *testing.T) {
	path := longHistory(t, t.TempDir(), 10)
	h := table.Health{Path: path}
	age := func() { // of files of this moment, more could be changed in it
		old := time.Now().Add(-time.Hour)
		for _, suffix := range []string{"", "-wal"} {
			if err := os.Chtimes(path+suffix, old, old); err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
		}
	}
	read := func() { must.Do(t, h.ReadPart(t.Context())) }
	read()
	read()
	if h.Rests() {
		t.Error("files that were changed just now are not read again")
	}
	settle := func() {
		t.Helper()
		age()
		h.Rests()
		read()
		if h.Rests() {
			t.Error("it rests after one pass, which may have begun before the change")
		}
		read()
		if !h.Rests() {
			t.Error("all was read twice, and it does not rest")
		}
	}
	settle()
	rests := 1
	for h.Rests() && rests < 100 {
		rests++
	}
	if rests < 10 || rests == 100 {
		t.Errorf("%d checks in a row are left out, want most of them, and not all", rests)
	}
	if !h.Rests() {
		t.Error("without a change, it is read again twice")
	}
	whole := must.Get(os.ReadFile(path))(t)
	must.Do(t, os.WriteFile(path, whole, 0o600))
	if h.Rests() {
		t.Error("a page was written, and is not read")
	}
	settle()
	must.Do(t, os.WriteFile(path+".new", whole, 0o600))
	must.Do(t, os.Rename(path+".new", path))
	age()
	if h.Rests() {
		t.Error("another file is in its place, and is not read")
	}
}

// The rows before the newest ones are read too.
func TestDamageBehindTheNewestRowsIsFound(t *testing.T) {
	path := longHistory(t, t.TempDir(), 400)
	damage{pages: func(int) []int { return []int{5} }, fill: noise}.Apply(t, path)
	l := must.Get(Open(path, Options{Session: NewID()}))(t)
	defer l.Close()
	var found *DamageError
	eventually(t, l.health, "it is not found", func() bool { return errors.As(l.Damage(), &found) })
	if found.Seq < 1 || found.Seq > 400-table.HealthTail {
		t.Errorf("Damage = %v, want a row before the newest %d", found, table.HealthTail)
	}
}
