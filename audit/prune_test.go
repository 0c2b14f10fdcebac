package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit/internal/chain"
	"github.com/ALRubinger/aileron/audit/internal/table"
	"github.com/ALRubinger/aileron/e2e/must"
)

// prune removes the rows before a time, as the command does.
func prune(t testing.TB, path string, q PruneQuery) (PrunePlan, error) {
	t.Helper()
	plan, err := openReader(t, path).PlanPrune(t.Context(), q)
	if err != nil {
		return plan, err
	}
	l := openSession(t, path, "")
	_, err = l.Prune(t.Context(), plan, nil)
	closeLog(t, l)
	return plan, err
}

// tsOf returns the time of a row.
func tsOf(t testing.TB, path string, seq int64) time.Time {
	t.Helper()
	return rowAt(t, openReader(t, path), seq).TS
}

// agedHome is signedHome, and returns the time of the first row of the second session too.
func agedHome(t testing.TB) (home, kept string, second time.Time) {
	t.Helper()
	home, kept = signedHome(t)
	path := filepath.Join(home, databaseName)
	return home, kept, tsOf(t, path, 603)
}

// mustPrune prunes, and wants a log that verifies.
func mustPrune(t testing.TB, path string, q PruneQuery) PrunePlan {
	t.Helper()
	plan := must.Get(prune(t, path, q))(t)
	if report := verifyPath(t, path); !report.OK {
		t.Fatalf("after a prune of %+v Verify = %+v", plan, report)
	}
	return plan
}

func TestARowStandsForThoseThatWerePruned(t *testing.T) {
	home, kept, second := agedHome(t)
	path := filepath.Join(home, databaseName)
	hash := rowAt(t, openReader(t, path), 602).Hash
	plan := mustPrune(t, path, PruneQuery{Before: second})
	if plan.Rows != 602 || plan.First != 1 || plan.Last != 602 || plan.Newer != 603 || plan.Sessions != 1 {
		t.Errorf("the plan is %+v", plan)
	}
	report := verifyWith(t, path, Evidence{Heads: kept})
	p := report.Pruned
	if !report.OK || report.Rows != 1206-602 || p == nil || p.First != 1 || p.Last != 602 || p.Rows != 602 ||
		p.Hash != hash || p.Seq != 1206 || report.Kept != 1 || report.Left != 0 || report.Signed != 1204 {
		t.Errorf("Verify = %+v, with %+v", report, p)
	}
	rows, err := openReader(t, path).List(t.Context(), Filter{})
	if err != nil || len(rows) != 604 || rows[0].Seq != 603 || rows[603].Event != EventPruned {
		t.Errorf("%d rows: %v", len(rows), err)
	}
	if err := changeRow(t, path, "DELETE FROM events"); err == nil {
		t.Error("the trigger does not stand again")
	}
	raw, err := os.ReadFile(chain.SignedHeadsPath(path))
	if notes, rest := chain.SplitNotes(string(raw)); err != nil || len(notes) != 2 || rest != "" {
		t.Errorf("audit.checkpoints has %d notes, %q, %v", len(notes), rest, err)
	}
	// A session goes on, and a second prune stands for both.
	history(t, home, "third", 5)
	plan = mustPrune(t, path, PruneQuery{Before: time.Now().Add(time.Hour)})
	if report = verifyPath(t, path); plan.First != 603 || report.Rows != 1 || report.Pruned.First != 1 ||
		report.Pruned.Rows != plan.Last || !report.Pruned.From.Equal(p.From) {
		t.Errorf("the second plan is %+v, and Verify = %+v with %+v", plan, report, report.Pruned)
	}
	if plan = mustPrune(t, path, PruneQuery{Before: second}); plan.Rows != 0 {
		t.Errorf("nothing is old, and the plan is %+v", plan)
	}
	history(t, home, "fourth", 5)
	if _, report := all(t, path); !report.OK {
		t.Errorf("Verify = %+v", report)
	}
}

// Rows of a session that has not ended stay, or had not ended at the time, and all rows behind its first one.
func TestRowsOfSessionsThatRunAreNotPruned(t *testing.T) {
	home, _, _ := agedHome(t)
	path := filepath.Join(home, databaseName)
	far := time.Now().Add(time.Hour)
	running := func(session string) bool { return session == "second" }
	if plan := mustPrune(t, path, PruneQuery{Before: far, Running: running}); plan.Last != 602 ||
		plan.Session != "second" || plan.Sessions != 1 {
		t.Errorf("the plan is %+v", plan)
	}
	history(t, home, "third", 2)
	if plan := mustPrune(t, path, PruneQuery{Before: tsOf(t, path, 700)}); plan.Rows != 0 || plan.Session != "second" {
		t.Errorf("a part of a session: the plan is %+v", plan)
	}
	id := NewID()
	l := openSession(t, path, id)
	must.Get(l.Append(t.Context(), Row{Event: EventSessionStarted, SessionID: id}))(t)
	start := rowAt(t, l, mustNewest(t, l))
	if plan := mustPrune(t, path, PruneQuery{Before: far}); plan.Session != id || plan.Last != start.Seq-1 {
		t.Errorf("a session with a journal: the plan is %+v; it began with row %d", plan, start.Seq)
	}
	// It notices nothing.
	for i := range 3 {
		appendNumbered(t, l, id, i)
		l.flush(t.Context())
		whileIdle(t, l, func() { l.attested = time.Time{} })
	}
	closeLog(t, l)
	rows, report := all(t, path)
	if !report.OK || len(rows) != 5 {
		t.Errorf("%d rows, Verify = %+v", len(rows), report)
	}
}

func mustNewest(t testing.TB, l *Log) int64 {
	t.Helper()
	newest := must.Get(l.db.Newest(t.Context()))(t)
	return newest.Seq
}

// A process whose last row was pruned finds that it was, and does not take it for a log that was cut. Rows that were
// removed without a prune, or with one that another key signed, are still missing.
func TestAProcessKnowsThatItsRowWasPruned(t *testing.T) {
	for _, w := range []struct {
		name   string
		after  func(t *testing.T, home, path string)
		broken bool
	}{
		{"pruned", func(*testing.T, string, string) {}, false},
		{"pruned by another key", func(t *testing.T, home, _ string) {
			other, _ := signedHome(t)
			copyFile(t, chain.KeyPath(filepath.Join(other, databaseName)), chain.KeyPath(filepath.Join(home, databaseName)))
		}, true},
		{"without a signature that fits", func(t *testing.T, _, path string) {
			execSQL(t, path, "UPDATE events SET fields = replace(fields, ?, ?) WHERE event = ?", "pruned 1 ", "pruned 2 ",
				EventPruned)
		}, true},
	} {
		t.Run(w.name, func(t *testing.T) {
			home, _, _ := agedHome(t)
			path := filepath.Join(home, databaseName)
			l := openSession(t, path, "")
			appendNumbered(t, l, "", 0)
			mustPrune(t, path, PruneQuery{Before: time.Now().Add(time.Hour)})
			w.after(t, home, path)
			whileIdle(t, l, func() { l.attested = time.Time{} })
			appendNumbered(t, l, "", 1)
			closeLog(t, l)
			rows, _ := all(t, path)
			if broken := countEvents(rows, EventBroken) > 0; broken != w.broken {
				t.Errorf("audit.broken: %v, want %v", broken, w.broken)
			}
		})
	}
}

func countEvents(rows []Row, event Event) (n int) {
	for _, r := range rows {
		if r.Event == event {
			n++
		}
	}
	return n
}

// A process that opens the log after its newest head was pruned, because the prune was killed before it wrote its own,
// finds nothing wrong.
func TestAPruneThatIsKilledBeforeItsHeadIsWritten(t *testing.T) {
	home, _, _ := agedHome(t)
	path := filepath.Join(home, databaseName)
	saved := t.TempDir()
	for _, name := range []string{headName, witnessName, "audit.checkpoints"} {
		copyFile(t, filepath.Join(home, name), filepath.Join(saved, name))
	}
	mustPrune(t, path, PruneQuery{Before: time.Now().Add(time.Hour)})
	for _, name := range []string{headName, witnessName, "audit.checkpoints"} {
		copyFile(t, filepath.Join(saved, name), filepath.Join(home, name))
	}
	must.Do(t, os.WriteFile(filepath.Join(home, "audit.writing-killed"), nil, 0o600))
	if report := verifyPath(t, path); !report.OK {
		t.Errorf("Verify = %+v", report)
	}
	history(t, home, "next", 2)
	rows, report := all(t, path)
	if !report.OK || countEvents(rows, EventBroken) > 0 {
		t.Errorf("Verify = %+v", report)
	}
}

// A prune that is killed leaves rows that the signed row stands for: the log verifies, and the next prune removes them,
// whatever its time.
func TestAPruneThatWasKilledIsFinished(t *testing.T) {
	home, kept, second := agedHome(t)
	path := filepath.Join(home, databaseName)
	plan := must.Get(openReader(t, path).PlanPrune(t.Context(), PruneQuery{Before: second}))(t)
	l := openSession(t, path, "")
	must.Get(l.commitPruned(t.Context(), plan, 200))(t)
	closeLog(t, l)
	for range 2 {
		report := verifyWith(t, path, Evidence{Heads: kept})
		if !report.OK || report.Left != 402 || report.Pruned.Last != 602 {
			t.Errorf("Verify = %+v", report)
		}
		history(t, home, "another", 2)
	}
	rest := mustPrune(t, path, PruneQuery{Before: tsOf(t, path, 202)})
	rows, report := all(t, path)
	if rest.Rows != 402 || report.Left != 0 || rows[0].Seq != 603 || countEvents(rows, EventPruned) != 1 {
		t.Errorf("the plan is %+v; Verify = %+v", rest, report)
	}
	// The same with further rows that are old.
	later := time.Now()
	plan = must.Get(openReader(t, path).PlanPrune(t.Context(), PruneQuery{Before: later}))(t)
	l = openSession(t, path, "")
	must.Get(l.commitPruned(t.Context(), plan, 650))(t)
	closeLog(t, l)
	history(t, home, "last", 2)
	end := mustPrune(t, path, PruneQuery{Before: time.Now().Add(time.Hour)})
	if report := verifyPath(t, path); report.Pruned.Rows != report.Pruned.Last || report.Pruned.First != 1 ||
		report.Left != 0 || report.Pruned.Last != end.Last || end.First != 651 || end.Last <= plan.Last {
		t.Errorf("Verify = %+v with %+v", report, report.Pruned)
	}
}

// A prune must not remove the evidence: rows that do not verify stay.
func TestRowsThatDoNotVerifyAreNotPruned(t *testing.T) {
	base, _, _ := agedHome(t)
	other, _ := signedHome(t)
	for _, w := range []struct {
		name string
		do   func(t *testing.T, home, path string)
		want string // "": it is pruned, because what is broken stays
	}{
		{"a row edited", func(t *testing.T, _, path string) {
			execSQL(t, path, "UPDATE events SET host = 'x' WHERE seq = 7")
		}, "its content does not have its hash"},
		{"a row removed", func(t *testing.T, _, path string) {
			execSQL(t, path, "DELETE FROM events WHERE seq = 7")
		}, "row 7 is missing before it"},
		{"the first rows removed", func(t *testing.T, _, path string) {
			execSQL(t, path, "DELETE FROM events WHERE seq < 7")
		}, "rows 1 to 6 are missing before it"},
		{"chained again with its heads", func(t *testing.T, home, _ string) {
			forge(t, home, true, plainEdit)
		}, "its signed head is row 601 with hash"},
		{"the same, without signed heads", func(t *testing.T, home, _ string) {
			forge(t, home, true, func(r *Row) bool { return plainEdit(r) && r.Event != EventCheckpoint })
		}, "audit.checkpoints has another hash for row 601"},
		{"the heads removed", func(t *testing.T, home, _ string) { remove(t, home, headName) },
			"the head outside the database is missing"},
		{"the key replaced", func(t *testing.T, home, path string) {
			copyFile(t, chain.KeyPath(filepath.Join(other, databaseName)), chain.KeyPath(path))
		}, "is signed by another key"},
		{"a break that a row reports", func(t *testing.T, home, path string) {
			l := openSession(t, path, "")
			r := Row{Event: EventBroken, Reason: chain.ReasonJournalChanged, TS: time.Unix(1, 0),
				Fields: map[string]any{"file": "f"}}
			must.Get(l.Append(t.Context(), r))(t)
			closeLog(t, l)
		}, "audit.broken: f is not what its session wrote"},
		{"a row edited that stays", func(t *testing.T, _, path string) {
			execSQL(t, path, "UPDATE events SET host = 'x' WHERE seq = 1100")
		}, ""},
	} {
		t.Run(w.name, func(t *testing.T) {
			home := copySigned(t, base)
			path := filepath.Join(home, databaseName)
			before := tsOf(t, path, 1000)
			if w.name == "a break that a row reports" {
				before = time.Now().Add(time.Hour)
			}
			w.do(t, home, path)
			broken := verifyPath(t, path)
			if broken.OK {
				t.Fatal("Verify finds nothing")
			}
			plan, err := prune(t, path, PruneQuery{Before: before})
			var refused *UnverifiedError
			if w.want != "" && (!errors.As(err, &refused) || !strings.Contains(findingTexts(refused.Report), w.want)) ||
				w.want == "" && (err != nil || plan.Rows == 0) {
				t.Errorf("prune = %v of %+v, want %q", err, plan, w.want)
			}
			after := verifyPath(t, path)
			if after.OK || (w.want == "") != (after.Pruned != nil) {
				t.Errorf("Verify = %+v", after)
			}
		})
	}
}

// What Verify finds in a log that was pruned, and then changed.
func TestALogThatWasPrunedIsVerified(t *testing.T) {
	base, kept, second := agedHome(t)
	old := signedHeadOfRow(t, base, 100)
	mustPrune(t, filepath.Join(base, databaseName), PruneQuery{Before: second})
	later := signedHeadOf(t, filepath.Join(base, databaseName))
	edge := signedHeadOfRow(t, base, 602)
	emptyWAL(t, filepath.Join(base, databaseName)) // readers of this test are still open
	for _, w := range []struct {
		name  string
		query string
		heads string
		want  string // "": it verifies
	}{
		{"as it is", "", "", ""},
		{"with heads of rows that are left", "", kept + "\n" + later, ""},
		{"with the head of the last row that was pruned", "", edge, ""},
		{"with a head that was pruned, and one that was not", "", old + "\n" + kept, ""},
		{"with a head that was pruned", "", old, "rows 1 to 602 were pruned, and no head of a later row was kept"},
		{"more rows removed", "DELETE FROM events WHERE seq < 700", "", "rows 603 to 699 are missing before it"},
		{"one more row removed", "DELETE FROM events WHERE seq = 603", "", "row 603 is missing before it"},
		{"without its row", "DELETE FROM events WHERE seq = 1206", "", "rows 1 to 602 are missing before it"},
		{"its row edited", "UPDATE events SET fields = replace(fields, 'pruned 1 602', 'pruned 1 609') WHERE seq = 1206", "",
			"it does not say which rows were pruned"},
		{"its row edited in both", "UPDATE events SET fields = replace(replace(fields, 'pruned 1 602 602', " +
			"'pruned 1 602 601'), '\"rows\":602', '\"rows\":601') WHERE seq = 1206", "",
			"a signature that does not fit its text"},
		{"a signed head in its place", "UPDATE events SET event = 'audit.pruned' WHERE seq = 1205", "",
			"it does not say which rows were pruned"},
		{"the first row edited", "UPDATE events SET prev_hash = '" + chain.ZeroHash + "' WHERE seq = 603", "",
			"its prev_hash is not the hash of the row before it"},
	} {
		t.Run(w.name, func(t *testing.T) {
			home := copySigned(t, base)
			path := filepath.Join(home, databaseName)
			if w.query != "" {
				execSQL(t, path, w.query)
			}
			report := verifyWith(t, path, Evidence{Heads: w.heads})
			if report.OK != (w.want == "") || !strings.Contains(findingTexts(report), w.want) {
				t.Errorf("Verify finds:\n%s; want %q", findingTexts(report), w.want)
			}
		})
	}
}

// What VerifyExport finds in the rows of a log that was pruned: the first one left must follow the last that is not.
func TestAnExportOfALogThatWasPrunedIsVerified(t *testing.T) {
	home, _, second := agedHome(t)
	path := filepath.Join(home, databaseName)
	mustPrune(t, path, PruneQuery{Before: second})
	rows := must.Get(openReader(t, path).List(t.Context(), Filter{}))(t)
	anew, broken := strings.Repeat("a", 64), "its prev_hash is not the hash of the last row that was pruned"
	for name, w := range map[string]struct {
		from int64
		prev string // that of the first row, to which all are chained anew; "": as they are
		want string // "": it verifies
	}{
		"all rows":                 {603, "", ""},
		"rows behind others":       {700, "", ""},
		"all rows, chained anew":   {603, anew, broken},
		"later rows, chained anew": {700, anew, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var export bytes.Buffer
			out, prev := json.NewEncoder(&export), w.prev
			out.SetEscapeHTML(false)
			for _, r := range rows {
				if r.Seq < w.from {
					continue
				}
				if w.prev != "" && r.Event != EventCheckpoint { // whose text has hashes of rows
					r.Chain(prev, string(must.Get(r.AppendFields(nil))(t)))
				} else if w.prev != "" {
					continue
				}
				prev = r.Hash
				must.Do(t, out.Encode(r))
			}
			got := must.Get(VerifyExport(&export, Evidence{}))(t)
			if got.OK != (w.want == "") || !strings.Contains(findingTexts(got.Report), w.want) {
				t.Errorf("VerifyExport finds:\n%s; want %q", findingTexts(got.Report), w.want)
			}
		})
	}
}

// A note that does not fit the fields of its row stands for no rows.
func TestABrokenNoteOfAnExportStandsForNothing(t *testing.T) {
	home, _, second := agedHome(t)
	path := filepath.Join(home, databaseName)
	mustPrune(t, path, PruneQuery{Before: second})
	for fields, pruned := range map[string]int64{`"rows":602`: 602, `"rows":601`: 0} {
		var export strings.Builder
		out := json.NewEncoder(&export)
		out.SetEscapeHTML(false)
		for _, r := range must.Get(openReader(t, path).List(t.Context(), Filter{}))(t) {
			must.Do(t, out.Encode(r))
		}
		text := strings.Replace(export.String(), `"rows":602`, fields, 1)
		got := must.Get(VerifyExport(strings.NewReader(text), Evidence{}))(t)
		broken := strings.Contains(findingTexts(got.Report), "it does not say which rows were pruned")
		if got.Pruned != pruned || broken != (pruned == 0) {
			t.Errorf("with %s, %d rows are counted as pruned, want %d; VerifyExport finds:\n%s", fields, got.Pruned, pruned,
				findingTexts(got.Report))
		}
	}
}

// signedHeadOfRow returns a signed head of a row, as a person has kept it.
func signedHeadOfRow(t testing.TB, home string, seq int64) string {
	t.Helper()
	path := filepath.Join(home, databaseName)
	k := must.Get(chain.ReadKey(chain.KeyPath(path)))(t)
	h := chain.Head{Seq: seq}
	if seq == 602 {
		first := must.Get(openReader(t, path).db.First(t.Context()))(t)
		h.Hash = first.Hash
	} else {
		h.Hash = rowAt(t, openReader(t, path), seq).Hash
	}
	signed := must.Get(k.Sign(h))(t)
	return signed
}

// A prune that was planned for another log does nothing.
func TestAPlanThatIsOutdated(t *testing.T) {
	home, _, second := agedHome(t)
	path := filepath.Join(home, databaseName)
	plan := must.Get(openReader(t, path).PlanPrune(t.Context(), PruneQuery{Before: second}))(t)
	mustPrune(t, path, PruneQuery{Before: time.Now().Add(time.Hour)})
	before, _ := all(t, path)
	l := openSession(t, path, "")
	if _, err := l.Prune(t.Context(), plan, nil); !errors.Is(err, ErrPlanOutdated) {
		t.Errorf("Prune = %v, want %v", err, ErrPlanOutdated)
	}
	_ = l.Close()
	if after, report := all(t, path); !report.OK || len(after) != len(before) {
		t.Errorf("%d rows were %d; Verify = %+v", len(after), len(before), report)
	}
}

// Follow shows rows behind a prune once, and does not take the prune for a log that was cut.
func TestFollowGoesOnBehindAPrune(t *testing.T) {
	home, _, _ := agedHome(t)
	path := filepath.Join(home, databaseName)
	shown, notices := make(chan Row, 64), make(chan Notice, 64)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() {
		ended <- Follow(ctx, path, Filter{Limit: 1, Newest: true}, func(r Row) error { shown <- r; return nil },
			func(n Notice) { notices <- n })
	}()
	if r := <-shown; r.Seq != 1205 {
		t.Errorf("row %d is shown first", r.Seq)
	}
	mustPrune(t, path, PruneQuery{Before: time.Now().Add(time.Hour)})
	history(t, home, "next", 2)
	for want := int64(1206); want <= 1208; want++ {
		if r := <-shown; r.Seq != want {
			t.Errorf("row %d is shown, want %d", r.Seq, want)
		}
	}
	stop()
	if err := <-ended; err != nil || len(shown) > 0 || len(notices) > 0 {
		t.Errorf("Follow = %v, with %d rows and %d notices more", err, len(shown), len(notices))
	}
}

// The file becomes smaller when its rows are gone, and the index forgets them.
func TestAPruneGivesSpaceBack(t *testing.T) {
	path, rows := indexedLog(t, 1)
	completeIndex(t, path)
	last := rows[len(rows)-1]
	must.Get(prune(t, path, PruneQuery{Before: last.TS.Add(time.Hour)}))(t)
	raw, err := os.ReadFile(table.IndexPath(path))
	if err != nil || strings.Trim(string(raw[table.BlockAt(0):table.BlockAt(1)]), "\x00") != "" {
		t.Errorf("the index has a record of rows that are gone: %v", err)
	}
	l := openSession(t, path, "")
	s, err := l.Shrink(t.Context())
	if err != nil || s.After > s.Before/4 || s.After == 0 {
		t.Errorf("Shrink = %+v, %v", s, err)
	}
	if again, err := l.Shrink(t.Context()); err != nil || again.Before != s.After || again.After != s.After {
		t.Errorf("Shrink = %+v, %v; nothing is left to do", again, err)
	}
	closeLog(t, l)
	if _, report := all(t, path); !report.OK || report.Rows != 1 {
		t.Errorf("Verify = %+v", report)
	}
	if err := changeRow(t, path, "DELETE FROM events"); err == nil {
		t.Error("the trigger is gone")
	}
}

// Readers find what is left of a large log, with and without an index.
func TestReadersOfALogThatWasPruned(t *testing.T) {
	path, rows := indexedLog(t, 1)
	completeIndex(t, path)
	cut := len(rows)/2 + 100
	plan := mustPrune(t, path, PruneQuery{Before: rows[cut].TS})
	left := rows[plan.Last:]
	if plan.Rows == 0 || len(left) == 0 {
		t.Fatalf("the plan is %+v", plan)
	}
	newest := rowAt(t, openReader(t, path), rows[len(rows)-1].Seq+1)
	checkReaders(t, path, append(left, newest))
	remove(t, filepath.Dir(path), table.IndexName)
	checkReaders(t, path, append(left, newest))
	if _, err := openReader(t, path).Get(t.Context(), rows[0].ID); !errors.Is(err, ErrNotFound) {
		t.Errorf("Get of a row that was pruned = %v", err)
	}
}

// copySigned returns a copy of a home with a signed log.
func copySigned(t *testing.T, from string) (home string) {
	t.Helper()
	home = t.TempDir()
	must.Do(t, os.Mkdir(filepath.Join(home, "vault"), 0o700))
	for _, name := range signedFiles {
		copyFile(t, filepath.Join(from, name), filepath.Join(home, name))
	}
	return home
}
