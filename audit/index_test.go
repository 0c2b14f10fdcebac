package audit

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit/internal/chain"
	"github.com/ALRubinger/aileron/audit/internal/table"
	"github.com/ALRubinger/aileron/e2e/must"
)

// indexed are the files and rows of the logs of indexedLog, by seed: tests of this package run one after the other.
var indexed = map[uint64]struct {
	files map[string][]byte
	rows  []Row
}{}

// indexedLog returns a log of three blocks and a part of a fourth, and its rows. The clock jumped forth and back
// while it was written.
func indexedLog(t *testing.T, seed uint64) (path string, rows []Row) {
	t.Helper()
	home := t.TempDir()
	path = filepath.Join(home, databaseName)
	made, found := indexed[seed]
	if !found {
		made.rows, made.files = writeIndexed(t, path, seed), map[string][]byte{}
		for _, name := range must.Get(filepath.Glob(filepath.Join(home, "*")))(t) {
			made.files[filepath.Base(name)] = must.Get(os.ReadFile(name))(t)
		}
		indexed[seed] = made
	}
	for name, data := range made.files {
		must.Do(t, os.WriteFile(filepath.Join(home, name), data, 0o600))
	}
	return path, slices.Clone(made.rows)
}

func writeIndexed(t *testing.T, path string, seed uint64) (rows []Row) {
	t.Helper()
	l := must.Get(Open(path, Options{}))(t)
	groups := make(chan []*Row, 64)
	generate(seed, 3*table.BlockRows+500, groups)
	close(groups)
	jumps := rand.New(rand.NewPCG(3, 4))
	var jump time.Duration
	for group := range groups {
		for i, r := range group {
			if jumps.IntN(300) == 0 {
				jump = time.Duration(jumps.IntN(120)-60) * time.Minute
			}
			if r.TS = r.TS.Add(jump); i%7 == 0 {
				r.Path = "/a&b\"c/é/" + r.Path // needs escapes
			}
		}
		l.mustWrite(t, group)
		for _, r := range group {
			rows = append(rows, *r)
		}
	}
	closeLog(t, l)
	return rows
}

// completeIndex writes the records of all complete blocks.
func completeIndex(t *testing.T, path string) {
	t.Helper()
	l := openReader(t, path)
	l.db.CatchUp(t.Context())
	if left, complete := l.db.Unindexed(t.Context()); len(left) > 0 || complete != 3 {
		t.Fatalf("the blocks %v of %d have no record", left, complete)
	}
}

func openReader(t testing.TB, path string) *Log {
	t.Helper()
	l := must.Get(OpenReader(path))(t)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// selected returns the numbers of the rows that a filter selects, without SQLite and without an index.
func selected(rows []Row, f Filter) (seqs []int64) {
	for _, r := range rows {
		if (f.Session == "" || r.SessionID == f.Session) && (f.Event == "" || r.Event == f.Event) &&
			(f.Decision == "" || r.Decision == f.Decision) && (f.Host == "" || r.Host == f.Host) &&
			(f.Connector == "" || r.ConnectorFQN == f.Connector) && (f.Since.IsZero() || !r.TS.Before(f.Since)) &&
			(f.Until.IsZero() || r.TS.Before(f.Until)) && r.Seq > f.AfterSeq &&
			(f.ThroughSeq == 0 || r.Seq <= f.ThroughSeq) {
			seqs = append(seqs, r.Seq)
		}
	}
	if f.Limit > 0 && len(seqs) > f.Limit {
		if f.Newest {
			return seqs[len(seqs)-f.Limit:]
		}
		return seqs[:f.Limit]
	}
	return seqs
}

// someFilters returns filters with values of the rows and without. They select few rows each: those that the index
// could hide are selected by a column alone, in the middle of a few others, and reading all rows is checkEvery's.
func someFilters(rows []Row, n int) []Filter {
	random := rand.New(rand.NewPCG(5, 6))
	all := []Filter{{Limit: 7}, {Limit: 7, Newest: true}, {Until: time.Unix(0, 0)}, {Since: time.Unix(1<<40, 0)}}
	for at := damagedSlot; at < len(rows); at += table.BlockRows {
		r := rows[at]
		for _, f := range []Filter{
			{Session: r.SessionID}, {Event: r.Event}, {Decision: r.Decision}, {Host: r.Host}, {Connector: r.ConnectorFQN},
			{Since: r.TS}, {Until: r.TS.Add(time.Nanosecond)}, {Since: r.TS, Until: r.TS.Add(time.Nanosecond)},
		} {
			f.AfterSeq, f.Limit = r.Seq-5, 20
			all = append(all, f)
		}
	}
	for n += len(all); len(all) < n; {
		r, other := rows[random.IntN(len(rows))], rows[random.IntN(len(rows))]
		if random.IntN(2) == 0 {
			other = r
		}
		var f Filter
		for bit, set := range []func(){
			func() { f.Session = r.SessionID }, func() { f.Event = other.Event }, func() { f.Decision = other.Decision },
			func() { f.Host = r.Host }, func() { f.Connector = other.ConnectorFQN }, func() { f.Since = r.TS },
			func() { f.Until = other.TS.Add(time.Nanosecond) }, func() { f.AfterSeq = other.Seq - 100 },
			func() { f.Limit = 1 + random.IntN(50) }, func() { f.Newest = true }, func() { f.Host = "never.example" },
			func() { f.ThroughSeq = other.Seq + 100 },
		} {
			if random.IntN(11) < 3 && (bit != 10 || random.IntN(4) == 0) {
				set()
			}
		}
		if f.Session == "" && f.Host == "" && f.Limit == 0 {
			f.Limit = 1 + random.IntN(50)
		}
		all = append(all, f)
	}
	return all
}

// damagedSlot is the row of each block whose marks damageIndex may change.
const damagedSlot = 250

// checkEvery compares all rows, and all of a column, with what a reader returns.
func checkEvery(t *testing.T, path string, rows []Row) {
	t.Helper()
	l := openReader(t, path)
	for _, f := range []Filter{{}, {Event: EventProxyProxied}} {
		checkFilter(t, l, rows, f)
	}
}

// checkFilter compares the rows that a filter selects with those that it should.
func checkFilter(t *testing.T, l *Log, rows []Row, f Filter) {
	t.Helper()
	var got []int64
	err := l.Each(t.Context(), f, func(r Row) error { got = append(got, r.Seq); return nil })
	if want := selected(rows, f); err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v selects %d rows %.60s, %v; want %d %.60s", f, len(got), fmt.Sprint(got), err, len(want),
			fmt.Sprint(want))
	}
	got, f.Newest = nil, true // of EachSeq
	err = l.EachSeq(t.Context(), f, func(seq int64) error { got = append(got, seq); return nil })
	want := selected(rows, f)
	if slices.Reverse(want); err != nil || !slices.Equal(got, want) {
		t.Errorf("EachSeq of %+v: %d numbers %.60s, %v; want %d %.60s", f, len(got), fmt.Sprint(got), err, len(want),
			fmt.Sprint(want))
	}
}

// damageIndex changes the index of a log.
func damageIndex(t *testing.T, path string, change func(raw []byte) []byte) {
	t.Helper()
	raw := must.Get(os.ReadFile(table.IndexPath(path)))(t)
	must.Do(t, os.WriteFile(table.IndexPath(path), change(raw), 0o600))
}

// TestFiltersSelectTheSameRowsWithAnyIndex is the claim on which everything else rests: whatever the index is, a
// reader returns what a look at every row returns.
func TestFiltersSelectTheSameRowsWithAnyIndex(t *testing.T) {
	path, rows := indexedLog(t, 1)
	checkEvery(t, path, rows)
	completeIndex(t, path)
	checkEvery(t, path, rows)
	whole := must.Get(os.ReadFile(table.IndexPath(path)))(t)
	for _, c := range []struct {
		name   string
		change func(raw []byte) []byte
	}{
		{"whole", func(raw []byte) []byte { return raw }},
		{"empty", func([]byte) []byte { return nil }},
		{"without the second record", func(raw []byte) []byte {
			clear(raw[table.BlockAt(1):table.BlockAt(2)])
			return raw
		}},
		{"ends in half a record", func(raw []byte) []byte { return raw[:table.BlockAt(2)+5000] }},
		{"a flipped bit in every column", func(raw []byte) []byte {
			for n := range int64(3) {
				for column := range int64(table.MarkColumns + 1) {
					raw[table.BlockAt(n)+table.BlockHead+column*table.MarkSize+4*damagedSlot] ^= 4
				}
			}
			return raw
		}},
		{"a flipped bit in a head", func(raw []byte) []byte { raw[table.BlockAt(1)+20] ^= 1; return raw }},
		{"records of other blocks", func(raw []byte) []byte {
			one, two := table.BlockAt(1), table.BlockAt(2)
			return append(append(slices.Clone(raw[:one]), raw[two:]...), raw[one:two]...)
		}},
		{"a newer format", func(raw []byte) []byte { raw[len(table.IndexMagic)-2] = '2'; return raw }},
		{"another salt", func(raw []byte) []byte {
			// As if a process had made the file anew between two looks at it.
			clear(raw[table.IndexHead:])
			raw[len(table.IndexMagic)]++
			return raw
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			must.Do(t, os.WriteFile(table.IndexPath(path), slices.Clone(whole), 0o600))
			damageIndex(t, path, c.change)
			checkReaders(t, path, rows)
			if report, err := openReader(t, path).Verify(t.Context()); err != nil || !report.OK {
				t.Errorf("Verify = %+v, %v", report, err)
			}
		})
	}
}

// checkReaders compares every reader with the rows.
func checkReaders(t *testing.T, path string, rows []Row) {
	t.Helper()
	l := openReader(t, path)
	for _, f := range someFilters(rows, 16) {
		checkFilter(t, l, rows, f)
	}
	for seq := 0; seq < len(rows); seq += 997 {
		if got, err := l.Get(t.Context(), rows[seq].ID); err != nil || got.Hash != rows[seq].Hash {
			t.Errorf("Get of row %d = row %d, %v", rows[seq].Seq, got.Seq, err)
		}
	}
	if _, err := l.Get(t.Context(), NewID()); !errors.Is(err, ErrNotFound) {
		t.Errorf("Get of an id that no row has: %v", err)
	}
	session := rows[len(rows)/2].SessionID
	want := chain.NewOpenIntents(chain.MaxOpen)
	for _, r := range rows {
		if request, _ := r.Fields["request_id"].(string); r.SessionID == session {
			want.Add(r.Seq, r.Event, request)
		}
	}
	if n, err := l.OpenIntents(t.Context(), session); err != nil || n != len(want.Seqs) {
		t.Errorf("OpenIntents = %d, %v; want %d", n, err, len(want.Seqs))
	}
}

// TestAnIndexOfAnotherLogIsNotUsed restores an older log and continues it differently: records of rows that are no
// longer there must not hide the new ones.
func TestAnIndexOfAnotherLogIsNotUsed(t *testing.T) {
	path, _ := indexedLog(t, 1)
	completeIndex(t, path)
	other, rows := indexedLog(t, 2)
	extra := openTest(t, other)
	for i := range 2 * table.BlockRows / 1024 {
		group := make([]*Row, 1024)
		for j := range group {
			group[j] = &Row{Event: EventVaultLocked, SessionID: "s", Host: fmt.Sprintf("new-%d.example", i)}
		}
		extra.mustWrite(t, group)
		for _, r := range group {
			rows = append(rows, *r)
		}
	}
	raw := must.Get(os.ReadFile(table.IndexPath(path)))(t)
	must.Do(t, os.WriteFile(table.IndexPath(other), raw, 0o600))
	checkReaders(t, other, rows)
}
