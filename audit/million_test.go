package audit

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/audit/internal/table"
	"github.com/ALRubinger/aileron/e2e/must"
)

// BenchmarkReaders measures readers of a large log in CPU time. AILERON_BENCH_ROWS is the number of its rows (20000 if
// it is not set), and AILERON_BENCH_HOME a directory in which the log is kept for the next run.
func BenchmarkReaders(b *testing.B) {
	l, n := benchLog(b)
	defer l.Close()
	benchmarkReaders(b, l, n)
}

// benchLog opens the log that the benchmarks read, and returns its number of rows.
func benchLog(b *testing.B) (l *Log, n int) {
	b.Helper()
	n, _ = strconv.Atoi(os.Getenv("AILERON_BENCH_ROWS"))
	if n == 0 {
		n = 20000
	}
	dir := os.Getenv("AILERON_BENCH_HOME")
	if dir == "" {
		dir = b.TempDir()
	}
	path := filepath.Join(dir, "audit.db")
	_, err := os.Stat(path)
	if err != nil {
		largeLog(b, path, n)
	}
	l = must.Get(OpenReader(path))(b)
	l.db.CatchUp(b.Context()) // as a session that rests does
	return l, n
}

func benchmarkReaders(b *testing.B, l *Log, n int) {
	b.Helper()
	some := rowAt(b, l, int64(n/3))
	rare := rowAt(b, l, int64(n/2))
	for rare.Reason != "host_not_allowed" {
		rare = rowAt(b, l, rare.Seq+1)
	}
	const never = "never.example"
	for name, f := range map[string]Filter{
		"none": {}, "session": {Session: some.SessionID}, "session-never": {Session: NewID()},
		"event":      {Event: EventProxyProxied},
		"event-rare": {Event: EventSessionStarted}, "event-never": {Event: EventVaultLocked},
		"decision": {Decision: DecisionRejected}, "decision-never": {Decision: DecisionUpgrade},
		"host": {Host: "host-7.example"}, "host-rare": {Host: rare.Host}, "host-never": {Host: never},
		"connector": {Connector: "github://acme/connector-3"}, "connector-never": {Connector: "github://acme/" + never},
		"until":          {Until: some.TS},
		"since-until":    {Since: some.TS, Until: some.TS.Add(time.Second)},
		"until-host":     {Until: some.TS, Host: "host-7.example"},
		"combination":    {Session: some.SessionID, Host: "host-7.example", Decision: DecisionRejected},
		"combined-never": {Host: "host-7.example", Connector: "github://acme/connector-3"},
		"event-decision": {Event: EventProxyStarted, Decision: DecisionProxied},
		"binding":        {Binding: "api_key/tracker/work"}, "binding-never": {Binding: never},
		"reason": {Reason: "host_not_allowed"}, "reason-never": {Reason: never},
		"operation": {Operation: "issues.get"}, "operation-never": {Operation: never},
		"sessions": {Sessions: []string{some.SessionID, rare.SessionID}},
	} {
		f.Limit, f.Newest = 100, true
		measure(b, "list/"+name, func() error {
			_, err := l.List(b.Context(), f)
			return err
		})
	}
	measure(b, "list/decision-all", func() error {
		_, err := l.List(b.Context(), Filter{Decision: DecisionRejected})
		return err
	})
	measure(b, "show", func() error {
		_, err := l.Get(b.Context(), some.ID)
		return err
	})
	measure(b, "show-never", func() error {
		if _, err := l.Get(b.Context(), NewID()); err != ErrNotFound {
			return fmt.Errorf("Get = %w", err)
		}
		return nil
	})
	measure(b, "show-prefix", func() error {
		rows, err := l.Find(b.Context(), some.ID[:14], 10)
		if len(rows) != 1 {
			return fmt.Errorf("Find = %d rows, %w", len(rows), err)
		}
		return err
	})
	measure(b, "session-start", func() error {
		_, err := l.SessionStart(b.Context(), some.SessionID)
		return err
	})
	for name, f := range map[string]Filter{"all": {}, "session": {Session: some.SessionID}, "binding": {Binding: never}} {
		measure(b, "groups/"+name, func() error {
			_, err := l.Groups(b.Context(), f, GroupBy{})
			return err
		})
	}
	measure(b, "groups/intents", func() error {
		_, err := l.Groups(b.Context(), Filter{}, GroupBy{Intents: true})
		return err
	})
	measure(b, "groups/hosts", func() error {
		_, err := l.Groups(b.Context(), Filter{}, GroupBy{Hosts: true})
		return err
	})
	measure(b, "summary", func() error {
		_, _, err := l.Summarize(b.Context(), Filter{})
		return err
	})
	measure(b, "open-intents", func() error {
		_, err := l.OpenIntents(b.Context(), some.SessionID)
		return err
	})
	for name, f := range map[string]Filter{
		"none": {}, "host-never": {Host: never}, "binding-never": {Binding: never}, "until": {Until: some.TS},
	} {
		f.Limit, f.Newest, f.ThroughSeq = 100, true, int64(n)
		measure(b, "unfinished/"+name, func() error {
			_, err := l.Unfinished(b.Context(), f)
			return err
		})
	}
	measure(b, "tail", func() error {
		ctx, stop := context.WithCancel(b.Context())
		defer stop()
		show := func(Row) error { stop(); return nil }
		return l.Follow(ctx, Filter{Limit: 20, Newest: true}, show)
	})
	measure(b, "verify", func() error {
		report, err := l.Verify(b.Context())
		if err == nil && !report.OK {
			return fmt.Errorf("Verify: %+v", report)
		}
		return err
	})
}

// measure runs f as a benchmark that reports the CPU time of the process.
func measure(b *testing.B, name string, f func() error) {
	b.Run(name, func(b *testing.B) {
		b.ReportAllocs()
		before := cpuTime(b)
		for b.Loop() {
			must.Do(b, f())
		}
		b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N)/1e6, "cpu-ms/op")
	})
}

// cpuTime is the CPU time that the process has used.
func cpuTime(t testing.TB) time.Duration {
	var used unix.Rusage
	must.Do(t, unix.Getrusage(unix.RUSAGE_SELF, &used))
	return time.Duration(unix.TimevalToNsec(used.Utime) + unix.TimevalToNsec(used.Stime))
}

func rowAt(t testing.TB, l *Log, seq int64) Row {
	t.Helper()
	rows, err := l.List(t.Context(), Filter{AfterSeq: seq - 1, Limit: 1})
	if err != nil || len(rows) != 1 {
		t.Fatalf("row %d: %v, %v", seq, rows, err)
	}
	return rows[0]
}

// largeLog writes a log of n rows: 200 sessions, one after the other in pairs, 60 hosts, 12 connectors, intents with
// their outcomes, and 2 % denials on hosts that occur once.
func largeLog(t testing.TB, path string, n int) {
	t.Helper()
	l := must.Get(Open(path, Options{}))(t)
	defer closeLog(t, l)
	rows := make(chan []*Row, 4)
	go func() { defer close(rows); generate(1, n, rows) }()
	for group := range rows {
		must.Do(t, l.commit(group, table.Extra{}))
	}
}

// mustWrite commits a group in one transaction, and no signed head.
func (l *Log) mustWrite(t testing.TB, group []*Row) {
	t.Helper()
	must.Do(t, l.ready())
	l.tx.Signer = nil
	must.Do(t, l.commit(group, table.Extra{}))
}

// generate sends n rows in groups, others for each seed.
func generate(seed uint64, n int, to chan<- []*Row) {
	random := rand.New(rand.NewPCG(seed, 2))
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	entropy := ulid.Monotonic(testRandom{random}, 0)
	id := func() string { return ulid.MustNew(ulid.Timestamp(now), entropy).String() }
	sessions := [2]string{}
	each := max(2, n/100)
	var group []*Row
	send := func(r *Row) {
		now = now.Add(time.Duration(random.IntN(2000)) * time.Microsecond)
		r.ID, r.TS = id(), now
		if group = append(group, r); len(group) == 1024 {
			to <- group
			group = nil
		}
	}
	for i := 0; i < n; {
		for s := range sessions {
			if i%each < 2 && i/each*2+s < 200 {
				sessions[s] = id()
				send(&Row{Event: EventSessionStarted, SessionID: sessions[s], Source: SourceLauncher})
				i++
			}
		}
		session := sessions[random.IntN(2)]
		if random.IntN(100) < 2 {
			send(&Row{
				Event: EventSandboxRejected, SessionID: session, Source: SourceConnectTLS, Decision: DecisionRejected,
				Reason: "host_not_allowed", Method: "GET", Scheme: "https", HTTPVersion: "HTTP/1.1", Status: 403,
				Host: fmt.Sprintf("h%x.example", random.Uint64()), Port: 443, Path: "/",
				Fields: map[string]any{"request_id": id()},
			})
			i++
			continue
		}
		host := random.IntN(60)
		r := Row{
			Event: EventProxyStarted, SessionID: session, Source: SourceConnectTLS,
			ConnectorFQN:     fmt.Sprintf("github://acme/connector-%d", host%12),
			ConnectorVersion: "1.2.0", Tool: "tracker", Operation: "issues.get", Binding: "api_key/tracker/work",
			Method: "GET", Scheme: "https", Host: fmt.Sprintf("host-%d.example", host), Port: 443,
			Path: fmt.Sprintf("/v1/projects/p%d/issues/%d", host, random.IntN(1e6)), HTTPVersion: "HTTP/1.1",
			Fields: map[string]any{"request_id": id()},
		}
		outcome := r
		outcome.Event, outcome.Decision, outcome.Status = EventProxyProxied, DecisionProxied, 200
		outcome.ResponseBytes, outcome.DurationUS = random.Int64N(1e6), random.Int64N(1e6)
		send(&r)
		send(&outcome)
		i += 2
	}
	to <- group
}

type testRandom struct{ *rand.Rand }

func (r testRandom) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(r.Uint32())
	}
	return len(p), nil
}
