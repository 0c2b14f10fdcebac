package otlp

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	logscol "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	tracecol "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	logspb "go.opentelemetry.io/proto/otlp/logs/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
)

// patience is how long a test waits for a collector that responds. A busy machine may take more time than the end of a
// session has for it.
var patience = must.Patience(5 * time.Minute)

// collector is a stand-in for a collector that parses what it gets with the official protobufs.
type collector struct {
	t      *testing.T
	server *httptest.Server
	// answer, if not nil, answers instead, and reports whether it did.
	answer func(w http.ResponseWriter, r *http.Request) bool

	endBound time.Duration // of the exporters to it; 0: the usual one

	mu       sync.Mutex
	spans    []*tracepb.Span
	records  []*logspb.LogRecord
	resource map[string]any
	requests []*http.Request
	got      chan struct{} // a request was parsed
}

func newCollector(t *testing.T, answer func(http.ResponseWriter, *http.Request) bool) *collector {
	t.Helper()
	c := &collector{t: t, answer: answer, endBound: patience, got: make(chan struct{}, 1000)}
	c.server = httptest.NewServer(c)
	t.Cleanup(c.server.Close)
	return c
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	c.requests = append(c.requests, r)
	c.mu.Unlock()
	if c.answer != nil && c.answer(w, r) {
		return
	}
	c.take(w, r)
}

// take parses a request and accepts it.
func (c *collector) take(w http.ResponseWriter, r *http.Request) {
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		zipped, err := gzip.NewReader(r.Body)
		if err != nil {
			c.t.Errorf("the body is not gzip: %v", err)
			return
		}
		body = zipped
	}
	raw, err := io.ReadAll(body)
	if err != nil {
		c.t.Errorf("read a body: %v", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var reply proto.Message = &tracecol.ExportTraceServiceResponse{}
	switch {
	case r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/x-protobuf":
		c.t.Errorf("%s with %q", r.Method, r.Header.Get("Content-Type"))
	case strings.HasSuffix(r.URL.Path, "/traces"):
		var message tracecol.ExportTraceServiceRequest
		c.parse(raw, &message)
		for _, res := range message.GetResourceSpans() {
			c.resource = values(res.GetResource().GetAttributes())
			for _, s := range res.GetScopeSpans() {
				c.spans = append(c.spans, s.GetSpans()...)
			}
		}
	default:
		reply = &logscol.ExportLogsServiceResponse{}
		var message logscol.ExportLogsServiceRequest
		c.parse(raw, &message)
		for _, res := range message.GetResourceLogs() {
			for _, s := range res.GetScopeLogs() {
				c.records = append(c.records, s.GetLogRecords()...)
			}
		}
	}
	out, _ := proto.Marshal(reply)
	_, _ = w.Write(out)
	select {
	case c.got <- struct{}{}:
	default:
	}
}

func (c *collector) parse(raw []byte, m proto.Message) {
	if err := proto.Unmarshal(raw, m); err != nil {
		c.t.Errorf("parse a request: %v", err)
	}
}

// values returns attributes by their keys.
func values(all []*commonpb.KeyValue) map[string]any {
	m := map[string]any{}
	for _, kv := range all {
		switch v := kv.GetValue().GetValue().(type) {
		case *commonpb.AnyValue_StringValue:
			m[kv.GetKey()] = v.StringValue
		case *commonpb.AnyValue_IntValue:
			m[kv.GetKey()] = v.IntValue
		case *commonpb.AnyValue_BoolValue:
			m[kv.GetKey()] = v.BoolValue
		case *commonpb.AnyValue_ArrayValue:
			var texts []string
			for _, each := range v.ArrayValue.GetValues() {
				texts = append(texts, each.GetStringValue())
			}
			m[kv.GetKey()] = strings.Join(texts, " ")
		}
	}
	return m
}

// env returns an environment of pairs NAME, VALUE.
func env(pairs ...string) Environment {
	all := map[string]string{}
	for i := 0; i+1 < len(pairs); i += 2 {
		all["OTEL_"+pairs[i]] = pairs[i+1]
	}
	return func(name string) string { return all[name] }
}

// warnings are the lines that an exporter prints.
type warnings struct {
	mu    sync.Mutex
	lines []string
	first chan struct{} // closed by the first line
}

func newWarnings() *warnings { return &warnings{first: make(chan struct{})} }

func (w *warnings) add(line string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lines = append(w.lines, line); len(w.lines) == 1 {
		close(w.first)
	}
}

func (w *warnings) all() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lines
}

// open opens an exporter to the collector, with more variables.
func (c *collector) open(w *warnings, more ...string) *Exporter {
	c.t.Helper()
	to := must.Get(FromEnvironment(env(append([]string{"EXPORTER_OTLP_ENDPOINT", c.server.URL, "EXPORTER_OTLP_TIMEOUT",
		strconv.FormatInt(patience.Milliseconds(), 10)}, more...)...)))(c.t)
	return Open(to, Options{Session: "01SESSION", Version: "1.2.3", Warn: w.add, endBound: c.endBound})
}

// exchange adds an intent and its outcome, and returns the id of the request.
func exchange(x *Exporter, seq int64, outcome audit.Row) (request string) {
	request = audit.NewID()
	end := time.Date(2026, 1, 2, 3, 4, 5, 600, time.UTC)
	x.Add(audit.Row{Seq: seq, ID: audit.NewID(), TS: end.Add(-time.Second), Event: audit.EventProxyStarted,
		SessionID: "01SESSION", Hash: "intent-hash"}, `{"request_id":"`+request+`"}`)
	outcome.Seq, outcome.ID, outcome.TS, outcome.SessionID = seq+1, audit.NewID(), end, "01SESSION"
	x.Add(outcome, `{"request_id":"`+request+`","redirected":true,"dropped_headers":["cookie","x-a"],"project":"p"}`)
	return request
}

// proxied returns the outcome of a request that was sent.
func proxied() audit.Row {
	return audit.Row{Event: audit.EventProxyProxied, Decision: audit.DecisionProxied, Tool: "tracker",
		Operation: "issues.get", Binding: "bearer/tracker/work", Method: "GET", Scheme: "https", Host: "api.tracker.example",
		Port: 443, Path: "/v1/issues/42", Status: 200, ResponseBytes: 1024, DurationUS: 2_000_000,
		Source: audit.SourceConnectTLS, PrevHash: "before", Hash: "after"}
}
