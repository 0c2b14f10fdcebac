package audit

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ALRubinger/aileron/audit/internal/chain"
	"github.com/ALRubinger/aileron/audit/internal/table"
	"github.com/ALRubinger/aileron/e2e/must"
)

// A session names the row at which the chain breaks, wherever it is and once, and so does no later session.
func TestARunningSessionNamesTheRowAtWhichTheChainBreaks(t *testing.T) {
	const n = 3000 // and three signed heads
	whole := t.TempDir()
	l := must.Get(Open(filepath.Join(whole, databaseName), Options{}))(t)
	defer l.Close()
	for i := range n {
		must.Do(t, l.AppendSoon(t.Context(), Row{Event: EventProxyProxied, Status: i}))
	}
	l.flush(t.Context())
	emptyWAL(t, filepath.Join(whole, databaseName))
	for _, c := range []struct {
		name, change string
		reason       string
		seq, next    int64
		hash         bool // the expected row's hash is known
		found        string
	}{
		{"a row is removed", "DELETE FROM events WHERE seq = 1500",
			chain.ReasonRowMissing, 1500, 1501, true, chain.FoundMissing},
		{"of the newest", "DELETE FROM events WHERE seq = 2950",
			chain.ReasonRowMissing, 2950, 2951, true, chain.FoundMissing},
		{"where two parts meet", "DELETE FROM events WHERE seq = 1025",
			chain.ReasonRowMissing, 1025, 1026, true, chain.FoundMissing},
		{"rows are removed", "DELETE FROM events WHERE seq BETWEEN 500 AND 502",
			chain.ReasonRowMissing, 500, 503, false, "rows 500 to 502 missing"},
		{"a row is hashed again", "UPDATE events SET hash = '" + chain.ZeroHash + "' WHERE seq = 700",
			chain.ReasonRowChanged, 700, 701, true, chain.ZeroHash},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), databaseName)
			must.Do(t, os.CopyFS(filepath.Dir(path), os.DirFS(whole)))
			reports := make(chan Row, 16)
			s := must.Get(Open(path, Options{Session: NewID(), OnBroken: func(r Row) { reports <- r }}))(t)
			passes(t, s.health)
			execSQL(t, path, c.change)
			passes(t, s.health)
			passes(t, s.health)
			closeLog(t, s)
			if len(reports) != 1 {
				t.Fatalf("%d events report it, want 1", len(reports))
			}
			r := <-reports
			want := map[string]any{"expected_seq": c.seq, "next_seq": c.next, "found": c.found, "found_seq": int64(n + 3)}
			if c.hash {
				want["expected_hash"] = rowAt(t, l, c.seq).Hash
			}
			if r.Reason != c.reason || len(r.Fields) != len(want) {
				t.Errorf("the event is %s %v, want %s %v", r.Reason, r.Fields, c.reason, want)
			}
			for name, v := range want {
				if r.Fields[name] != v {
					t.Errorf("fields.%s is %v, want %v", name, r.Fields[name], v)
				}
			}
			next := must.Get(Open(path, Options{Session: NewID()}))(t)
			passes(t, next.health)
			closeLog(t, next)
			if rows, report := all(t, path); report.OK || countEvents(rows, EventBroken) != 1 {
				t.Errorf("%d events report it after another session; Verify = %+v", countEvents(rows, EventBroken), report)
			}
		})
	}
}

// passes waits until the checks have read every row once more.
func passes(t *testing.T, h *table.Health) {
	t.Helper()
	before := h.Passes.Load()
	eventually(t, h, "the rows are not read", func() bool { return h.Passes.Load() > before+1 })
}
