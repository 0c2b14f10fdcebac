package export

import (
	"bytes"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit"
)

// harLog is a HAR log as a reader decodes it.
type harLog struct {
	Log struct {
		Version string
		Entries []HAREntry
	}
}

func readHAR(t *testing.T, l *audit.Log, f audit.Filter) []HAREntry {
	t.Helper()
	var out bytes.Buffer
	if err := WriteHAR(t.Context(), l, &out, "test", f); err != nil {
		t.Fatal(err)
	}
	var log harLog
	if err := json.Unmarshal(out.Bytes(), &log); err != nil || log.Log.Version != "1.2" {
		t.Fatalf("%v in %s", err, out.Bytes())
	}
	return log.Log.Entries
}

func exchangeRows() []audit.Row {
	intent := audit.Row{Event: audit.EventProxyStarted, SessionID: "s", Source: audit.SourceConnectTLS,
		ConnectorFQN: "github://acme/tracker", ConnectorVersion: "1.2.0", Tool: "tracker", Operation: "issues.get",
		Binding: "api_key/tracker/work", Method: "GET",
		Scheme: "https", Host: "api.tracker.example", Port: 443, Path: "/v1/a%2Fb", HTTPVersion: "HTTP/1.1"}
	as := func(request string, change func(*audit.Row)) audit.Row {
		r := intent
		r.RequestID = request
		change(&r)
		return r
	}
	return []audit.Row{
		{Event: audit.EventSessionStarted, SessionID: "s"},
		as("r1", func(*audit.Row) {}),
		as("r2", func(*audit.Row) {}),
		as("r3", func(*audit.Row) {}),
		as("r1", func(r *audit.Row) {
			r.Event, r.Decision, r.Status, r.ResponseBytes = audit.EventProxyProxied, audit.DecisionProxied, 200, 7
			r.DurationUS, r.TS = 1500, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
			r.Fields = map[string]any{"title": "x"}
		}),
		as("r2", func(r *audit.Row) { r.Event, r.Reason = audit.EventProxyUnknown, "session_killed" }),
		as("r4", func(r *audit.Row) {
			r.Event, r.Decision, r.Status = audit.EventSandboxRejected, audit.DecisionRejected, 403
			r.Path, r.Operation, r.ConnectorFQN = "/x?token=1\u202e#f%zz", "", ""
		}),
		as("r5", func(r *audit.Row) {
			r.Event, r.Decision, r.Status, r.Host = audit.EventProxyProxied, audit.DecisionUpgrade, 101, "::1"
			r.Port = 8443
		}),
		as("r6", func(r *audit.Row) {
			r.Event, r.Decision, r.Method, r.Host, r.Path = audit.EventSandboxRejected, audit.DecisionRejected, "", "", ""
			r.Fields = map[string]any{"requests": 12}
		}),
		{Event: audit.EventSessionEnded, SessionID: "s"},
	}
}

func exchangeLog(t *testing.T) *audit.Log {
	t.Helper()
	l, err := audit.Open(filepath.Join(t.TempDir(), "audit.db"), audit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	for _, r := range exchangeRows() {
		if _, err := l.Append(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

func TestHARHasAnEntryForEachExchange(t *testing.T) {
	entries := readHAR(t, exchangeLog(t), audit.Filter{})
	if len(entries) != 6 {
		t.Fatalf("%d entries, want 6", len(entries))
	}
	first := entries[0]
	if a := first.Aileron; a.IntentSeq != 2 || a.Outcome != "recorded" || a.Binding != "api_key/tracker/work" ||
		a.Rule != "github://acme/tracker@1.2.0 tracker issues.get" || a.Fields["title"] != "x" || len(a.ID) != 26 {
		t.Errorf("_aileron is %+v", a)
	}
	if first.Request.URL != "https://api.tracker.example/v1/a%2Fb" || first.Time != 1.5 || first.Timings.Wait != 1.5 ||
		!first.StartedDateTime.Equal(time.Date(2026, 1, 2, 3, 4, 4, 998500000, time.UTC)) {
		t.Errorf("the first entry is %+v of %+v", first, first.Request)
	}
	for i, want := range []struct{ outcome, url, kind string }{
		{"recorded", "https://api.tracker.example/v1/a%2Fb", ""},
		{"unknown", "https://api.tracker.example/v1/a%2Fb", ""},
		{"recorded", "https://api.tracker.example/x%3Ftoken=1%E2%80%AE%23f%25zz", ""},
		{"recorded", "https://[::1]:8443/v1/a%2Fb", "websocket"},
		{"recorded", "about:blank", ""},
		{"none", "https://api.tracker.example/v1/a%2Fb", ""},
	} {
		e := entries[i]
		if e.Aileron.Outcome != want.outcome || e.Request.URL != want.url || e.Type != want.kind {
			t.Errorf("entry %d is %q %q %q, want %+v", i, e.Aileron.Outcome, e.Request.URL, e.Type, want)
		}
	}
	if got := entries[4].Comment; got != "one event for 12 requests" {
		t.Errorf("the comment of counted requests is %q", got)
	}
}

// A log that was edited may have two intents of one request: neither hides the other.
func TestHARHasEachOfTwoIntentsOfARequest(t *testing.T) {
	l := exchangeLog(t)
	want := len(readHAR(t, l, audit.Filter{})) + 3
	for _, c := range []struct {
		request string
		row     int // of exchangeRows
	}{{"between", 1}, {"between", 4}, {"twice", 1}, {"twice", 1}} { // r3 has no outcome either
		r := exchangeRows()[c.row]
		r.RequestID = c.request
		if _, err := l.Append(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	seqs := map[int64]bool{}
	entries := readHAR(t, l, audit.Filter{})
	for _, e := range entries {
		seqs[e.Aileron.Seq] = true
	}
	if len(seqs) != want || len(entries) != want {
		t.Errorf("%d entries of %d rows, want %d", len(entries), len(seqs), want)
	}
}

func TestHARTakesTheFilters(t *testing.T) {
	l := exchangeLog(t)
	for what, c := range map[string]struct {
		filter audit.Filter
		want   int
	}{
		"decision":       {audit.Filter{Decision: audit.DecisionRejected}, 2},
		"intents":        {audit.Filter{Event: audit.EventProxyStarted}, 3},
		"the newest":     {audit.Filter{Limit: 5, Newest: true}, 3}, // and session.ended with its signed head
		"nothing":        {audit.Filter{Session: "other"}, 0},
		"no exchange":    {audit.Filter{Event: audit.EventSessionStarted}, 0},
		"an intent only": {audit.Filter{Limit: 4}, 3},
	} {
		if got := readHAR(t, l, c.filter); len(got) != c.want {
			t.Errorf("%s: %d entries, want %d", what, len(got), c.want)
		}
	}
}

// A port is in the URL of an entry where the row has one and the scheme has another.
func TestHARHasAPortWhereItIsNotTheSchemes(t *testing.T) {
	for _, c := range []struct {
		scheme string
		port   int
		want   string
	}{
		{"https", 443, "https://x.example/"}, {"http", 80, "http://x.example/"}, {"https", 0, "https://x.example/"},
		{"https", 80, "https://x.example:80/"}, {"http", 443, "http://x.example:443/"}, {"https", 1, "https://x.example:1/"},
	} {
		e := NewHAREntry(audit.Row{Event: audit.EventProxyProxied, Scheme: c.scheme, Host: "x.example", Port: c.port,
			Path: "/", Method: "GET"})
		if e.Request.URL != c.want {
			t.Errorf("%s at port %d has the URL %s, want %s", c.scheme, c.port, e.Request.URL, c.want)
		}
	}
}

// Values that an edited log may have are no reason to fail, or to write something else than HAR.
func TestHARIsValidForStrangeRows(t *testing.T) {
	l, err := audit.Open(filepath.Join(t.TempDir(), "audit.db"), audit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, r := range []audit.Row{
		{DurationUS: -5}, {DurationUS: 1 << 62}, {Status: -1}, {Host: "a b\x00\xff]/@", Path: "*", Scheme: "https"},
		{Host: "x.example", Path: "x.example:443", Method: "CONNECT", Port: 443},
		{Host: "x.example", Path: "/" + strings.Repeat("\"\\\x1b", 1<<16), Fields: map[string]any{"requests": "many"}},
		{Host: "x.example", Path: "/<script>alert(1)</script>&\u202egnp.exe\x00"},
		{Host: "x.example", Path: "/", Fields: map[string]any{"title": strings.Repeat("\x00<\u202e", 2<<20)}},
		// A clock that jumps, as far as it goes.
		{TS: time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC), DurationUS: 1 << 62}, {TS: time.Unix(0, 0), DurationUS: 1 << 62},
		{TS: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)},
	} {
		r.Event = audit.EventSandboxRejected
		if _, err := l.Append(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	entries := readHAR(t, l, audit.Filter{})
	if len(entries) != 11 {
		t.Fatalf("%d entries", len(entries))
	}
	for _, e := range entries {
		if e.Time < 0 || strings.ContainsAny(e.Request.URL, " <>\"\\\x00\x1b\u202e") {
			t.Errorf("the entry %+v has the URL %.40q", e, e.Request.URL)
		}
	}
}

// limited accepts some bytes and then fails, as a full disk does.
type limited struct{ left int }

var errNoSpace = errors.New("no space left")

func (w *limited) Write(p []byte) (int, error) {
	if w.left -= len(p); w.left < 0 {
		return 0, errNoSpace
	}
	return len(p), nil
}

func TestHARReportsAFailedWrite(t *testing.T) {
	l := exchangeLog(t)
	for _, left := range []int{0, 1000} {
		if err := WriteHAR(t.Context(), l, &limited{left}, "test", audit.Filter{}); !errors.Is(err, errNoSpace) {
			t.Errorf("WriteHAR with room for %d bytes = %v, want %v", left, err, errNoSpace)
		}
	}
}

// An intent beyond the bound is an entry of its own: memory stays bounded, and nothing is left out.
func TestOpenIntentsAreBounded(t *testing.T) {
	open := unpairedIntents{seqs: map[string]int64{}}
	for i := range maxUnpaired {
		if !open.add(audit.NewID(), int64(i+1)) {
			t.Fatalf("intent %d is not remembered", i)
		}
	}
	if open.add(audit.NewID(), 1) || open.add("", 1) {
		t.Error("an intent beyond the bound is remembered")
	}
}
