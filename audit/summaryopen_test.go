package audit

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit/internal/table"
	"github.com/ALRubinger/aileron/e2e/must"
)

// openLog returns a log of seven sessions at once, of which two have ended. Most requests have an outcome some rows
// later, some are refused without an intent, and some ids are not those of aileron.
func openLog(t *testing.T, n int) (*Log, []Row) {
	t.Helper()
	path := filepath.Join(t.TempDir(), databaseName)
	l := must.Get(Open(path, Options{}))(t)
	random := rand.New(rand.NewPCG(1, 2))
	var sessions, group []*Row
	add := func(r Row) {
		r.ID, r.TS = NewID(), time.Unix(1_800_000_000, int64(len(group))).UTC()
		group = append(group, &r)
	}
	for range 7 {
		sessions = append(sessions, &Row{SessionID: NewID()})
	}
	var under []Row
	for i := range n {
		request := map[string]any{"request_id": NewID()}
		switch i % 50 {
		case 7:
			request["request_id"] = fmt.Sprintf("number %d \"", i)
		case 8:
			request = nil
		}
		r := Row{SessionID: sessions[random.IntN(7)].SessionID, Host: fmt.Sprintf("h%d.example", random.IntN(3)),
			Binding: "api_key/a", Event: EventProxyStarted, Fields: request}
		if random.IntN(10) == 0 {
			r.Event, r.Decision, r.Binding = EventSandboxRejected, DecisionRejected, ""
			add(r)
			continue
		}
		add(r)
		under = append(under, r)
		for len(under) > random.IntN(30) {
			k := random.IntN(len(under))
			outcome := under[k]
			outcome.Event, outcome.Decision = EventProxyProxied, DecisionProxied
			under[k] = under[len(under)-1]
			if under = under[:len(under)-1]; random.IntN(20) > 0 {
				add(outcome)
			}
		}
	}
	for _, s := range sessions[:2] {
		add(Row{SessionID: s.SessionID, Event: EventSessionEnded})
	}
	must.Do(t, l.commit(group, table.Extra{}))
	closeLog(t, l)
	reader := must.Get(OpenReader(path))(t)
	t.Cleanup(func() { closeLog(t, reader) })
	return reader, must.Get(reader.List(t.Context(), Filter{}))(t)
}

// openAmong counts the intents that a filter of a session, a host, a binding and times selects, and that have no
// outcome in the log, of sessions that have not ended.
func openAmong(rows []Row, f Filter) (n int) {
	open := map[any]Row{}
	for _, r := range rows {
		request := r.Fields["request_id"]
		switch {
		case r.Event == EventSessionEnded:
			for id, intent := range open {
				if intent.SessionID == r.SessionID {
					delete(open, id)
				}
			}
		case request == nil:
		case r.Event == EventProxyStarted:
			open[request] = r
		default:
			delete(open, request)
		}
	}
	for _, r := range open {
		if (f.Session == "" || r.SessionID == f.Session) && (f.Host == "" || r.Host == f.Host) &&
			(f.Binding == "" || r.Binding == f.Binding) && r.Seq > f.AfterSeq && !r.TS.Before(f.Since) &&
			(f.Until.IsZero() || r.TS.Before(f.Until)) {
			n++
		}
	}
	return n
}

// The requests without an outcome are counted, whatever selects them and in how many parts the log is read.
func TestASummaryCountsTheOpenRequests(t *testing.T) {
	l, rows := openLog(t, 3000)
	middle := rows[len(rows)/2]
	for _, f := range []Filter{{}, {Session: middle.SessionID}, {Host: "h1.example"}, {Since: middle.TS},
		{Until: middle.TS}, {Binding: "api_key/a"}, {Binding: "never"}, {AfterSeq: middle.Seq}, {Event: EventProxyStarted},
		{Since: middle.TS, Host: "h2.example"}} {
		want := openAmong(rows, f)
		got, groups, err := l.Summarize(t.Context(), f)
		if err != nil || got.Open != want {
			t.Errorf("%+v: %d requests are open, %v; want %d", f, got.Open, err, want)
		}
		counted := int64(0)
		for _, g := range groups {
			counted += g.Rows
		}
		if counted != got.Rows || (want > 0 && counted == 0) {
			t.Errorf("%+v: %d rows in groups, and %d in all", f, counted, got.Rows)
		}
	}
	ended := map[string]bool{}
	for _, r := range rows {
		ended[r.SessionID] = ended[r.SessionID] || r.Event == EventSessionEnded
	}
	want := openAmong(rows, Filter{})
	if want < 50 {
		t.Fatalf("%d requests are open: too few to tell", want)
	}
	for _, n := range []int64{1, 2, 7, 40} {
		filters := table.Split(Filter{ThroughSeq: int64(len(rows))}, n)
		_, open, err := l.db.GroupParts(t.Context(), filters, GroupBy{Intents: true, Ended: ended})
		if err != nil || len(open.Seqs) != want || open.Full != 0 {
			t.Errorf("%d parts: %+v, %v; want %d", n, open, err, want)
		}
	}
}

// An outcome, a decision or a reason has no open request.
func TestASummaryOfOutcomesHasNoOpenRequest(t *testing.T) {
	l, _ := openLog(t, 300)
	for _, f := range []Filter{{Event: EventProxyProxied}, {Decision: DecisionProxied}, {Reason: "never"}} {
		if got, _, err := l.Summarize(t.Context(), f); err != nil || got.Open != 0 {
			t.Errorf("%+v: %d requests are open, %v; want none", f, got.Open, err)
		}
	}
}
