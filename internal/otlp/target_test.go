package otlp

import (
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	logscol "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	"google.golang.org/protobuf/proto"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/ship"
)

// shipper returns a shipper of a home's log to the collector.
func (c *collector) shipper(home string, reports *[]string) *ship.Shipper {
	c.t.Helper()
	u := must.Get(url.Parse("otlp+" + c.server.URL))(c.t)
	report := func(format string, args ...any) { *reports = append(*reports, format) }
	headers := env("EXPORTER_OTLP_HEADERS", "authorization=Bearer%20canary")
	target := must.Get(NewTarget(u, headers, home, "1.2.3", report))(c.t)
	if strings.Contains(target.String(), "canary") {
		c.t.Errorf("the target's name is %s", target)
	}
	s := must.Get(ship.Open(home, target, ship.Options{Report: report}))(c.t)
	c.t.Cleanup(s.Close)
	return s
}

// record adds a request to the log of a home.
func record(t *testing.T, home string, rows ...audit.Row) {
	t.Helper()
	l := must.Get(audit.Open(filepath.Join(home, "audit.db"), audit.Options{Wrote: true}))(t)
	for _, r := range rows {
		must.Get(l.Append(t.Context(), r))(t)
	}
	must.Do(t, l.Close())
}

func TestRowsAreLogRecordsWithTheConventionsOfHTTP(t *testing.T) {
	c, home := newCollector(t, nil), t.TempDir()
	row := proxied()
	row.SessionID, row.HTTPVersion, row.RequestID, row.RequestBytes = "01SESSION", "HTTP/1.1", audit.NewID(), 7
	odd := audit.Row{Event: audit.EventSandboxRejected, Decision: audit.DecisionRejected, Method: "BREW",
		Reason: "no_request", Fields: map[string]any{"requests": 3}}
	record(t, home, row, odd)
	var reports []string
	sent, err := c.shipper(home, &reports).Once(t.Context())
	if err != nil || sent.Rows != 2 || len(reports) > 0 {
		t.Fatalf("Once = %+v, %v, %v", sent, err, reports)
	}
	got := values(c.records[0].GetAttributes())
	for name, want := range map[string]any{
		"http.request.method": "GET", "url.scheme": "https", "url.path": "/v1/issues/42",
		"server.address": "api.tracker.example", "server.port": int64(443), "http.response.status_code": int64(200),
		"http.request.body.size": int64(7), "http.response.body.size": int64(1024), "network.protocol.name": "http",
		"network.protocol.version": "1.1",
		"session.id":               "01SESSION", "aileron.seq": int64(1), "aileron.binding": "bearer/tracker/work",
		"aileron.duration_us": int64(2_000_000), "aileron.fields.request_id": row.RequestID,
	} {
		if got[name] != want {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
	if got["error.type"] != nil || c.records[0].GetEventName() != string(audit.EventProxyProxied) {
		t.Errorf("a request that was sent is %v", c.records[0])
	}
	before := got
	got = values(c.records[1].GetAttributes())
	if got["http.request.method"] != "_OTHER" || got["http.request.method_original"] != "BREW" ||
		got["error.type"] != "no_request" || got["aileron.prev_hash"] != before["aileron.hash"] {
		t.Errorf("a denial is %v", got)
	}
	r := c.requests[0]
	if header := r.Header.Get("Authorization"); header != "Bearer canary" || r.URL.Path != "/v1/logs" {
		t.Errorf("the request is %s with %q", r.URL, header)
	}
}

// What the collector did not accept is sent again, by this process or the next one, and what it accepted is not.
func TestACollectorThatWasDownGetsEachRow(t *testing.T) {
	down := true
	c := newCollector(t, func(w http.ResponseWriter, _ *http.Request) bool {
		if down {
			w.WriteHeader(http.StatusBadRequest)
		}
		return down
	})
	home := t.TempDir()
	record(t, home, proxied(), proxied())
	var reports []string
	if _, err := c.shipper(home, &reports).Once(t.Context()); err == nil || !strings.Contains(err.Error(), "400") {
		t.Errorf("Once: %v, want the status", err)
	}
	down = false
	must.Get(c.shipper(home, &reports).Once(t.Context()))(t)
	record(t, home, proxied())
	must.Get(c.shipper(home, &reports).Once(t.Context()))(t)
	var seqs []int64
	for _, r := range c.records {
		seqs = append(seqs, values(r.GetAttributes())["aileron.seq"].(int64))
	}
	if !slices.Equal(seqs, []int64{1, 2, 3}) {
		t.Errorf("the collector has the rows %v", seqs)
	}
}

func TestRowsThatACollectorRejectsAreReported(t *testing.T) {
	c := newCollector(t, func(w http.ResponseWriter, _ *http.Request) bool {
		raw, _ := proto.Marshal(&logscol.ExportLogsServiceResponse{
			PartialSuccess: &logscol.ExportLogsPartialSuccess{RejectedLogRecords: 1, ErrorMessage: "too old"}})
		_, _ = w.Write(raw)
		return true
	})
	home := t.TempDir()
	row := proxied()
	row.TS = time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
	record(t, home, row)
	var reports []string
	if sent, err := c.shipper(home, &reports).Once(t.Context()); err != nil || sent.Newest != 1 || len(reports) != 1 ||
		!strings.Contains(reports[0], "rejected %d of rows") {
		t.Errorf("Once = %+v, %v, %q", sent, err, reports)
	}
}
