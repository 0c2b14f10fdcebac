package audit

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit/internal/table"
	"github.com/ALRubinger/aileron/e2e/must"
)

// summedLog returns a log of three blocks, whose index has the sums of all, and a part of a fourth; and its rows.
func summedLog(t *testing.T, seed uint64) (*Log, []Row) {
	t.Helper()
	values := [][]string{{"a\x00", "\x1f"}, {OtherHosts, ""}, {"\xff", "\x1f"}}[seed]
	l, rows := oddLog(t, seed, 3*table.BlockRows+300, values...)
	l.db.CatchUp(t.Context())
	return l, rows
}

// forgeSums writes the sums of block 0 into the record of block 1, with checksums that fit.
func forgeSums(t *testing.T, path string) {
	t.Helper()
	x := must.Get(table.WriteIndex(path))(t)
	defer x.Close()
	from, to := table.NewIndexBlock(0), table.NewIndexBlock(1)
	if !x.Load(from) || !x.Load(to) {
		t.Fatal("there is no record")
	}
	for n := range table.SumsColumn + 1 {
		if !x.LoadColumn(from, n) || !x.LoadColumn(to, n) {
			t.Fatal("a column is damaged")
		}
	}
	if from.Column(table.SumsColumn)[0] == 0 {
		t.Fatal("the groups of the block were too many")
	}
	copy(to.Column(table.SumsColumn), from.Column(table.SumsColumn))
	to.Seal(to.Hash)
	must.Do(t, x.Store(to))
}

// checkCounts compares the groups of a log with those of its rows, for many filters.
func checkCounts(t *testing.T, l *Log, rows []Row) {
	t.Helper()
	third, last := rows[len(rows)/3], rows[len(rows)-1]
	for _, filter := range []Filter{
		{}, {AfterSeq: table.BlockRows}, {AfterSeq: 1, ThroughSeq: 2 * table.BlockRows}, {ThroughSeq: table.BlockRows - 1},
		{AfterSeq: table.BlockRows + 5, Reason: "\x1f"}, {Session: "\x1f"}, {Sessions: []string{"\x1f", "é"}},
		{Sessions: []string{}}, {Host: "\x1f"}, {Binding: "\x1f"}, {Since: third.TS}, {Until: third.TS},
		{Since: third.TS, Until: last.TS}, {Decision: DecisionRejected}, {Event: EventProxyStarted}, {Operation: "o"},
		{Connector: "c"}, {Connector: "never"}, {Limit: table.BlockRows + 700, Newest: true},
	} {
		selected := selectedRows(rows, filter)
		for _, by := range []GroupBy{{}, {Hosts: true, Intents: true}, {Hosts: true, Periods: []time.Time{third.TS}},
			{Periods: []time.Time{rows[9].TS, last.TS}, Intents: true}} {
			got, err := l.Groups(t.Context(), filter, by)
			if difference := differ(got, groupsOf(selected, by)); err != nil || difference != "" {
				t.Errorf("Groups of %+v by %+v: %v %s", filter, by, err, difference)
			}
		}
	}
}

// selectedRows returns the rows that a filter selects, without SQLite.
func selectedRows(rows []Row, f Filter) (all []Row) {
	for _, r := range rows {
		if (f.Reason == "" || r.Reason == f.Reason) && (f.Binding == "" || r.Binding == f.Binding) &&
			(f.Operation == "" || r.Operation == f.Operation) &&
			(f.Sessions == nil || slices.Contains(f.Sessions, r.SessionID)) {
			all = append(all, r)
		}
	}
	seqs := selected(all, f)
	return slices.DeleteFunc(all, func(r Row) bool { _, found := slices.BinarySearch(seqs, r.Seq); return !found })
}

// TestCountsByTheIndexAreThoseOfASimpleCount compares what sums give with what the rows give, whatever the index is:
// whole, damaged, of other rows, or of rows that were pruned.
func TestCountsByTheIndexAreThoseOfASimpleCount(t *testing.T) {
	l, rows := summedLog(t, 0)
	checkCounts(t, l, rows)
	damageIndex(t, l.path, func(raw []byte) []byte {
		from := table.BlockAt(1) + table.BlockHead + table.MarkColumns*table.MarkSize + 8*table.BlockRows // the sums
		raw[from+200] ^= 1
		return raw
	})
	checkCounts(t, l, rows)
	damageIndex(t, l.path, func(raw []byte) []byte {
		zero, one, two := table.BlockAt(0), table.BlockAt(1), table.BlockAt(2)
		return slices.Concat(raw[:zero], raw[one:two], raw[zero:one], raw[two:])
	})
	checkCounts(t, l, rows)
}

// TestSumsOfRowsThatWerePrunedAreNotCounted prunes a part of a block whose sums the index has.
func TestSumsOfRowsThatWerePrunedAreNotCounted(t *testing.T) {
	l, rows := summedLog(t, 1)
	const pruned = table.BlockRows/2 + 7
	execSQL(t, l.path, dropTriggers)
	execSQL(t, l.path, "DELETE FROM events WHERE seq <= ?", pruned)
	checkCounts(t, l, rows[pruned:])
}

// TestSumsOfAnotherLogAreNotCounted puts the index of one log beside another one.
func TestSumsOfAnotherLogAreNotCounted(t *testing.T) {
	l, rows := summedLog(t, 1)
	other, _ := summedLog(t, 2)
	raw := must.Get(os.ReadFile(table.IndexPath(other.path)))(t)
	must.Do(t, os.WriteFile(table.IndexPath(l.path), raw, 0o600))
	checkCounts(t, l, rows)
}

// TestVerifyFindsSumsThatAreWrong forges sums. That they are counted shows that counts use the index at all; that
// verify finds them, and writes them anew, why they may.
func TestVerifyFindsSumsThatAreWrong(t *testing.T) {
	l, rows := summedLog(t, 1)
	forgeSums(t, l.path)
	forged := must.Get(l.Groups(t.Context(), Filter{}, GroupBy{Intents: true}))(t)
	if differ(forged, groupsOf(rows, GroupBy{Intents: true})) == "" {
		t.Fatal("forged sums change no count: it reads every row")
	}
	report, err := l.Verify(t.Context())
	if err != nil || report.OK || len(report.Findings) != 1 ||
		!strings.Contains(report.Why, "audit.index does not have what rows 4097 to 8192 have") {
		t.Errorf("Verify = %+v, %v", report, err)
	}
	checkCounts(t, l, rows)
}

// TestTooManyGroupsForSums counts a log whose blocks have more groups than a record has room for.
func TestTooManyGroupsForSums(t *testing.T) {
	path, rows := indexedLog(t, 1)
	completeIndex(t, path)
	checkCounts(t, openReader(t, path), rows)
}

// TestASummaryBySumsCountsOpenIntents summarizes a log with sums, of a session that has ended and of one that has
// intents without an outcome, in blocks of their own and in one that both have.
func TestASummaryBySumsCountsOpenIntents(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.db")
	l := must.Get(Open(path, Options{}))(t)
	var group []*Row
	add := func(event Event, session, request string) {
		group = append(group, &Row{ID: NewID(), TS: time.Now(), Event: event, SessionID: session,
			Fields: map[string]any{"request_id": request}})
	}
	open := 0
	for i := range 3 * table.BlockRows / 2 {
		session, request := "ended", NewID()
		if i > table.BlockRows/2+9 {
			session = "running"
		}
		add(EventProxyStarted, session, request)
		if i%100 > 0 {
			add(EventProxyProxied, session, request)
		} else if session == "running" {
			open++
		}
	}
	add(EventSessionEnded, "ended", "")
	l.mustWrite(t, group)
	closeLog(t, l)
	reader := openReader(t, path)
	reader.db.CatchUp(t.Context())
	s, _, err := reader.Summarize(t.Context(), Filter{})
	if err != nil || s.Open != open || s.Rows != int64(len(group)) {
		t.Errorf("%d rows and %d intents without an outcome, %v; want %d and %d", s.Rows, s.Open, err, len(group), open)
	}
}
