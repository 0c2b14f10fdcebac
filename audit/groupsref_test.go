package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit/internal/table"
	"github.com/ALRubinger/aileron/e2e/must"
)

// oddValues are texts that a column may have, whatever a session writes: a received evidence file is read too.
var oddValues = []string{"", "", "a", "b", "a\x1fb", "\x1f", "\x00", "a\x00", "a\x00b", "\n", "é", "\xff", `"`, "1",
	"01", OtherHosts, strings.Repeat("long", 2000)}

// oddLog returns a log of n rows with odd columns, of these values if there are any, and its rows.
func oddLog(t *testing.T, seed uint64, n int, values ...string) (*Log, []Row) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "audit.db")
	l := must.Get(Open(path, Options{}))(t)
	random := rand.New(rand.NewPCG(seed, 1))
	if len(values) == 0 {
		values = []string{"", "\x1f"}
		for _, i := range random.Perm(len(oddValues))[:3] { // few, so that rows differ in little
			values = append(values, oddValues[i])
		}
	}
	text := func() string { return values[random.IntN(len(values))] }
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var group []*Row
	for range n {
		now = now.Add(time.Duration(random.IntN(3000)-1000) * time.Millisecond) // clocks are set back, too
		r := &Row{ID: NewID(), TS: now, SessionID: text(), Binding: text(), ConnectorFQN: "c", Tool: text(), Operation: "o",
			Reason: text(), Host: text(), Redactions: random.IntN(3)}
		switch random.IntN(4) {
		case 0:
			r.Event = EventProxyStarted
		case 1:
			r.Event, r.Decision = EventProxyProxied, DecisionProxied
			r.Fields = map[string]any{"requests": 5} // of a denial only
		case 2:
			r.Event, r.Decision = EventSandboxRejected, DecisionRejected
			counts := []any{7, 1, 0, -3, "9", 2.5, nil, map[string]any{"requests": 4}}
			r.Fields = map[string]any{"requests": counts[random.IntN(len(counts))]}
		case 3:
			r.Event, r.Decision, r.Operation = Event(text()), Decision(text()), text()
		}
		group = append(group, r)
	}
	must.Do(t, l.commit(group, table.Extra{}))
	closeLog(t, l)
	reader := must.Get(OpenReader(path))(t)
	t.Cleanup(func() { closeLog(t, reader) })
	rows, err := reader.List(t.Context(), Filter{})
	if err != nil || len(rows) < n {
		t.Fatalf("List = %d rows of %d, %v", len(rows), n, err)
	}
	return reader, rows
}

// groupsOf is Groups, as simple as can be, for rows that were selected.
func groupsOf(rows []Row, by GroupBy) (groups []Group) {
	at := map[Group]int{}
	for _, r := range rows {
		if r.Event == EventProxyStarted && !by.Intents {
			continue
		}
		key := columnsOf(r, by.Hosts)
		if len(by.Periods) > 0 {
			key.Period = -1
		}
		for i, begin := range by.Periods {
			if !r.TS.Before(begin) {
				key.Period = i
			}
		}
		i, known := at[key]
		if !known {
			i = len(groups)
			at[key] = i
			group := key
			group.First, group.Last = r.TS, r.TS
			groups = append(groups, group)
		}
		g := &groups[i]
		g.Rows++
		g.Requests++
		g.Redactions += int64(r.Redactions)
		if n, ok := r.Fields["requests"].(float64); ok && r.Decision == DecisionRejected && n > 0 && n == float64(int64(n)) {
			g.Requests += int64(n) - 1
			g.Counted += int64(n)
		}
		if r.TS.Before(g.First) {
			g.First = r.TS
		}
		if r.TS.After(g.Last) {
			g.Last = r.TS
		}
	}
	return groups
}

// Groups counts what a simple count of all rows counts, whatever is in a column, which filter selects, and in how many
// parts the log is read.
func TestGroupsAreThoseOfASimpleCount(t *testing.T) {
	for seed := range uint64(2) {
		l, rows := oddLog(t, seed, 400)
		middle := rows[len(rows)/2]
		for _, filter := range []Filter{
			{}, {AfterSeq: 300}, {AfterSeq: 100, ThroughSeq: 300, Reason: "\x1f"}, {Session: "a\x1fb"}, {Session: "a\x00"},
			{Sessions: []string{"", "\n", `"`}}, {Host: "\x1f"}, {Binding: "é", Reason: "1"}, {Since: middle.TS},
			{Until: middle.TS, Decision: DecisionRejected}, {Event: EventProxyStarted},
		} {
			selected := must.Get(l.List(t.Context(), filter))(t)
			for _, by := range []GroupBy{{}, {Intents: true}, {Hosts: true, Intents: true},
				{Hosts: true, Periods: []time.Time{rows[9].TS, middle.TS}}} {
				want := groupsOf(selected, by)
				for _, n := range []int64{1, 4, 7} {
					f := filter
					f.ThroughSeq, f.NoIntents = cmp.Or(f.ThroughSeq, int64(len(rows))), !by.Intents
					got, _, err := l.db.GroupParts(t.Context(), table.Split(f, n), by)
					must.Do(t, err)
					if n == 1 && filter.ThroughSeq == 0 {
						if all, err := l.Groups(t.Context(), filter, by); err != nil || !slices.Equal(all, got) {
							t.Errorf("Groups(%+v) = %d groups, %v; one part has %d", filter, len(all), err, len(got))
						}
					}
					if difference := differ(got, want); difference != "" {
						t.Fatalf("seed %d, %+v by %+v in %d parts: %s", seed, filter, by, n, difference)
					}
				}
			}
		}
	}
}

// differ returns how two lists of groups differ.
func differ(got, want []Group) string {
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			return fmt.Sprintf("group %d is\n%.600q, want\n%.600q", i, fmt.Sprintf("%+v", got[i]), fmt.Sprintf("%+v", want[i]))
		}
	}
	if len(got) != len(want) {
		return fmt.Sprintf("%d groups, want %d", len(got), len(want))
	}
	return ""
}

// With too many hosts, some are counted together, and every other count stays what it is.
func TestTooManyHostsAreCountedTogether(t *testing.T) {
	const most = 20
	l, rows := groupedLog(t, 3000)
	by := GroupBy{Hosts: true, Most: most}
	count := func(groups []Group) map[Group]int64 {
		rows := map[Group]int64{}
		for _, g := range groups {
			rows[Group{Session: g.Session, Event: g.Event, Connector: g.Connector}] += g.Rows
		}
		return rows
	}
	want := count(groupsOf(rows, GroupBy{}))
	for _, n := range []int64{1, 5} {
		filters := table.Split(Filter{ThroughSeq: int64(len(rows)), NoIntents: true}, n)
		groups, _, err := l.db.GroupParts(t.Context(), filters, by)
		must.Do(t, err)
		others, seen := 0, map[Group]bool{}
		for _, g := range groups {
			if g.Host == OtherHosts {
				others++
			}
			key := g
			key.Rows, key.Requests, key.First, key.Last = 0, 0, time.Time{}, time.Time{}
			if seen[key] {
				t.Errorf("%d parts have the group %+v twice", n, key)
			}
			seen[key] = true
		}
		if others == 0 || len(groups)-others > most {
			t.Errorf("%d parts: %d groups have a host of their own, and %d have not; want %d at most",
				n, len(groups)-others, others, most)
		}
		got := count(groups)
		for key, rows := range want {
			if got[key] != rows {
				t.Errorf("%d parts count %d rows of %+v, want %d", n, got[key], key, rows)
			}
		}
	}
}

// A count that is not wanted any more ends, between rows too.
func TestGroupsEndWithTheirContext(t *testing.T) {
	l, _ := groupedLog(t, table.MaxStretch+100)
	ctx, stop := context.WithCancel(t.Context())
	s, err := l.db.TableSnapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	n := 0
	err = s.Each(ctx, Filter{}, "seq", func(*table.Statement) error { n++; stop(); return nil })
	if !errors.Is(err, context.Canceled) || n != table.MaxStretch {
		t.Errorf("each = %v after %d rows, want %v after %d", err, n, context.Canceled, table.MaxStretch)
	}
}

// The numbers of rows may have gaps of any size, in a file that someone has made.
func TestGroupsOfNumbersFarApart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.db")
	largeLog(t, path, 100)
	execSQL(t, path, "DROP TRIGGER IF EXISTS events_update")
	const far = 1<<63 - 1
	execSQL(t, path, "UPDATE events SET seq = seq + ? WHERE seq > 90", int64(far-200))
	l := must.Get(OpenReader(path))(t)
	defer closeLog(t, l)
	groups := must.Get(l.Groups(t.Context(), Filter{}, GroupBy{Intents: true}))(t)
	rows := int64(0)
	for _, g := range groups {
		rows += g.Rows
	}
	if rows < 100 {
		t.Errorf("%d rows are counted, want 100", rows)
	}
}
