package audit

import (
	"maps"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit/internal/table"
	"github.com/ALRubinger/aileron/e2e/must"
)

// groupedLog returns a log of n rows, and these.
func groupedLog(t *testing.T, n int) (*Log, []Row) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "audit.db")
	largeLog(t, path, n)
	l := must.Get(OpenReader(path))(t)
	t.Cleanup(func() { closeLog(t, l) })
	rows := must.Get(l.List(t.Context(), Filter{}))(t)
	return l, rows
}

// columnsOf are the columns that rows of a group have in common.
func columnsOf(r Row, hosts bool) Group {
	g := Group{Session: r.SessionID, Binding: r.Binding, Connector: r.ConnectorFQN, Tool: r.Tool, Operation: r.Operation,
		Reason: r.Reason, Event: r.Event, Decision: r.Decision}
	if hosts {
		g.Host = r.Host
	}
	return g
}

// counted returns groups as numbers of rows by their columns and their period.
func counted(t *testing.T, groups []Group) map[Group]int64 {
	t.Helper()
	found := map[Group]int64{}
	for _, g := range groups {
		key := g
		key.Rows, key.Requests, key.First, key.Last = 0, 0, time.Time{}, time.Time{}
		if found[key] != 0 {
			t.Errorf("the group %+v is there twice", key)
		}
		found[key] = g.Rows
	}
	return found
}

// However a log is split for reading, each row is counted once, in its group and in its period.
func TestGroupsCountEachRowOnce(t *testing.T) {
	l, rows := groupedLog(t, 3000)
	middle := rows[len(rows)/2].TS
	periods := []time.Time{rows[9].TS, middle}
	for _, by := range []GroupBy{{}, {Intents: true}, {Hosts: true}, {Hosts: true, Periods: periods}} {
		want := map[Group]int64{}
		for _, r := range rows {
			if r.Event == EventProxyStarted && !by.Intents {
				continue
			}
			g := columnsOf(r, by.Hosts)
			if len(by.Periods) > 0 {
				g.Period = -1
			}
			for i, begin := range by.Periods {
				if !r.TS.Before(begin) {
					g.Period = i
				}
			}
			want[g]++
		}
		for _, n := range []int64{1, 2, 7} {
			filters := table.Split(Filter{ThroughSeq: int64(len(rows)), NoIntents: !by.Intents}, n)
			groups := must.Get(l.db.GroupParts(t.Context(), filters, by))(t)
			if got := counted(t, groups); !maps.Equal(got, want) {
				t.Errorf("%d parts by %+v have %d groups, want %d", n, by, len(got), len(want))
			}
			order := func(a, b Group) int { return a.First.Compare(b.First) }
			if !slices.IsSortedFunc(groups, order) {
				t.Errorf("%d parts are not in the order of their rows", n)
			}
		}
	}
}

// A limit selects the newest rows, intents among them.
func TestGroupsOfTheNewestRows(t *testing.T) {
	l, rows := groupedLog(t, 1000)
	groups, err := l.Groups(t.Context(), Filter{Limit: 10, Newest: true}, GroupBy{Intents: true})
	if err != nil {
		t.Fatal(err)
	}
	n := int64(0)
	for _, g := range groups {
		if n += g.Rows; g.First.Before(rows[len(rows)-10].TS) {
			t.Errorf("the group %+v has a row before the newest ten", g)
		}
	}
	if n != 10 {
		t.Errorf("%d rows are counted, want 10", n)
	}
}
