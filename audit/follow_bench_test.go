package audit

import (
	"context"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/must"
)

// BenchmarkFollow measures how much later than they were committed Follow shows the rows of a session that writes 5000
// a second, and reports the CPU time of a row, the writer's included. It fails if a row is lost or comes twice.
func BenchmarkFollow(b *testing.B) {
	path := filepath.Join(b.TempDir(), "audit.db")
	session := NewID()
	l := must.Get(Open(path, Options{Session: session}))(b)
	const each = 50 // rows in 10 ms
	rows := max(b.N, each)
	ctx, stop := context.WithTimeout(b.Context(), 10*time.Minute)
	defer stop()
	var late []time.Duration
	seen := map[string]bool{}
	ended := make(chan error, 1)
	follow := func() {
		ended <- Follow(ctx, path, Filter{}, func(r Row) error {
			if r.Event != EventProxyProxied {
				return nil
			}
			if seen[r.ID] {
				b.Errorf("row %d comes twice", r.Seq)
			}
			seen[r.ID] = true
			if late = append(late, time.Since(r.TS)); len(late) == rows {
				stop()
			}
			return nil
		}, nil)
	}
	before := cpuTime(b)
	b.ResetTimer()
	go follow()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for written := 0; written < rows && ctx.Err() == nil; {
		<-tick.C
		for range min(each, rows-written) {
			must.Get(l.Append(ctx, Row{Event: EventProxyProxied, Decision: DecisionProxied, SessionID: session,
				Method: "GET", Host: "a.example", Port: 443, Path: "/", Status: 200}))(b)
			written++
		}
	}
	if err := <-ended; err != nil || len(late) != rows {
		b.Fatalf("%d of %d rows were shown: %v", len(late), rows, err)
	}
	b.StopTimer()
	b.ReportMetric(float64(cpuTime(b)-before)/float64(rows), "cpu-ns/row")
	slices.Sort(late)
	b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
	b.ReportMetric(float64(late[len(late)/2].Milliseconds()), "median-ms")
	b.ReportMetric(float64(late[len(late)*99/100].Milliseconds()), "p99-ms")
	must.Do(b, l.Close())
}
