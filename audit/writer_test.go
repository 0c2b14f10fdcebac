package audit

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

// BenchmarkAppend appends the intent and the outcome of requests, in turn, until they are in the database. It reports
// the CPU time of the process for one row.
func BenchmarkAppend(b *testing.B) {
	for _, c := range []struct {
		name, session, durability string
		writers                   int
	}{
		{"journal/1", NewID(), "", 1}, {"journal/64", NewID(), "", 64},
		{"journal-full/1", NewID(), "full", 1}, {"journal-full/64", NewID(), "full", 64},
		{"commit/1", "", "", 1}, {"commit/64", "", "", 64},
	} {
		b.Run(c.name, func(b *testing.B) {
			l, err := Open(filepath.Join(b.TempDir(), databaseName), Options{Durability: c.durability, Session: c.session})
			if err != nil {
				b.Fatal(err)
			}
			defer l.Close()
			// The first signature of a process costs as much as a hundred rows.
			must.Get(l.SignedHead(context.Background()))(b)
			b.ReportAllocs()
			b.SetParallelism(c.writers)
			began := cpuTime(b)
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				row := outcomeOf(c.session, 1)
				row.Fields, row.Path, row.ConnectorFQN = nil, "/repos/acme/tracker/issues/17", "github://acme/tracker"
				for n := 0; pb.Next(); n++ {
					row.RequestID, row.Event = "01M829T4PYBZM8H6E56F7TZNX1", EventProxyStarted
					if n%2 == 0 {
						if _, err := l.Append(context.Background(), row); err != nil {
							b.Error(err)
						}
						continue
					}
					row.Event = EventProxyProxied
					if err := l.AppendSoon(context.Background(), row); err != nil {
						b.Error(err)
					}
				}
			})
			l.flush(context.Background())
			b.ReportMetric(float64(cpuTime(b)-began)/float64(b.N), "cpu-ns/op")
		})
	}
}

func TestADeferredRowIsReadAndChainedLikeAnyOther(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.db")
	l := openTest(t, path)
	for i := range 600 {
		must.Do(t, l.AppendSoon(t.Context(), Row{Event: EventProxyProxied, Status: i}))
		if i%7 == 0 {
			appendTest(t, l, EventProxyStarted)
		}
	}
	rows, err := l.List(t.Context(), Filter{Event: EventProxyProxied})
	if err != nil || len(rows) != 600 {
		t.Fatalf("List returns %d rows, %v; want 600", len(rows), err)
	}
	for i, r := range rows {
		if r.Status != i {
			t.Fatalf("row %d has the status %d", i, r.Status)
		}
	}
	if report, err := l.Verify(t.Context()); err != nil || !report.OK {
		t.Errorf("Verify = %+v, %v", report, err)
	}
	// Another process sees them too.
	other := must.Get(OpenReader(path))(t)
	defer other.Close()
	must.Do(t, l.AppendSoon(t.Context(), Row{Event: "soon"}))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	found := errors.New("found")
	if err := other.Follow(ctx, Filter{Event: "soon"}, func(Row) error { return found }); !errors.Is(err, found) {
		t.Errorf("the other process does not see the row: %v", err)
	}
}

func TestADeferredRowSurvivesAFullDisk(t *testing.T) {
	l := openTest(t, filepath.Join(t.TempDir(), "audit.db"))
	appendTest(t, l, EventSessionStarted)
	l.db.SQL().SetMaxOpenConns(1)
	must.Do(t, l.tx.Conn.Exec("PRAGMA max_page_count = 1"))
	big := Row{Event: "deferred", Fields: map[string]any{"x": strings.Repeat("y", 100_000)}}
	must.Do(t, l.AppendSoon(t.Context(), big))
	if _, err := l.Append(t.Context(), Row{Event: EventProxyStarted}); !errors.Is(err, ErrUnavailable) {
		t.Fatalf("Append on a full disk = %v, want ErrUnavailable", err)
	}
	must.Get(l.db.SQL().Exec("PRAGMA max_page_count = 1073741823"))(t)
	l.db.SQL().SetMaxOpenConns(4)
	appendTest(t, l, EventProxyStarted)
	if rows, err := l.List(t.Context(), Filter{Event: "deferred"}); err != nil || len(rows) != 1 {
		t.Errorf("List returns %d rows, %v; want the one that was deferred", len(rows), err)
	}
	if report, err := l.Verify(t.Context()); err != nil || !report.OK || report.Rows != 3 {
		t.Errorf("Verify = %+v, %v; want 3 rows", report, err)
	}
}
