package otlp

import (
	"crypto/tls"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	tracecol "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
)

func TestARequestIsASpanAndAnyOtherRowALogRecord(t *testing.T) {
	t.Parallel()
	c, w := newCollector(t, nil), newWarnings()
	x := c.open(w, "EXPORTER_OTLP_HEADERS", "api-key=canary%20secret, x-scope=7")
	request := exchange(x, 7, proxied())
	x.Add(audit.Row{Seq: 9, ID: "end", TS: time.Now(), Event: audit.EventSessionEnded},
		`{"exit_code":0,"grants":[{"a":1}]}`)
	alone := audit.NewID()
	x.Add(audit.Row{Seq: 10, Event: audit.EventProxyStarted, TS: time.Now()}, `{"request_id":"`+alone+`"}`)
	x.Add(audit.Row{Seq: 11, Event: audit.EventSandboxRejected, TS: time.Now()}, `{"request_id":"r","requests":5}`)
	x.Close()
	if len(c.spans) != 1 || len(c.records) != 3 || len(w.all()) != 0 {
		t.Fatalf("got %d spans, %d records and the warnings %q", len(c.spans), len(c.records), w.all())
	}
	s := c.spans[0]
	id, _ := ulid.ParseStrict(request)
	if hex.EncodeToString(s.GetTraceId()) != hex.EncodeToString(id[:]) ||
		hex.EncodeToString(s.GetSpanId()) != hex.EncodeToString(id[8:]) || len(s.GetParentSpanId()) > 0 {
		t.Errorf("the span has the ids %x, %x and %x, want those of %s", s.GetTraceId(), s.GetSpanId(), s.GetParentSpanId(),
			request)
	}
	if s.GetName() != "tracker issues.get" || s.GetKind() != tracepb.Span_SPAN_KIND_CLIENT ||
		s.GetEndTimeUnixNano()-s.GetStartTimeUnixNano() != 2e9 ||
		s.GetStatus().GetCode() != tracepb.Status_STATUS_CODE_UNSET {
		t.Errorf("the span is %v", s)
	}
	got := values(s.GetAttributes())
	for name, want := range map[string]any{"seq": int64(8), "event": "connector.proxy.proxied", "session_id": "01SESSION",
		"binding": "bearer/tracker/work", "port": int64(443), "path": "/v1/issues/42", "status": int64(200),
		"response_bytes": int64(1024), "duration_us": int64(2_000_000), "hash": "after", "prev_hash": "before",
		"fields.request_id": request, "fields.redirected": true, "fields.dropped_headers": "cookie x-a",
		"fields.project": "p"} {
		if got[name] != want {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
	if e := s.GetEvents(); len(e) != 1 || e[0].GetName() != "connector.proxy.started" ||
		values(e[0].GetAttributes())["seq"] != int64(7) || e[0].GetTimeUnixNano() != s.GetEndTimeUnixNano()-1e9 {
		t.Errorf("the span's events are %v", e)
	}
	counted, ended, intent := c.records[1], c.records[0], c.records[2]
	if ended.GetEventName() != "session.ended" || values(ended.GetAttributes())["fields.grants"] != `[{"a":1}]` {
		t.Errorf("the first record is %v", ended)
	}
	if counted.GetSeverityText() != "WARN" || values(counted.GetAttributes())["fields.requests"] != int64(5) {
		t.Errorf("the second record is %v", counted)
	}
	if id, _ := ulid.ParseStrict(alone); hex.EncodeToString(intent.GetTraceId()) != hex.EncodeToString(id[:]) {
		t.Errorf("the intent without an outcome is %v", intent)
	}
	if c.resource["service.name"] != "aileron" || c.resource["service.instance.id"] != "01SESSION" {
		t.Errorf("the resource is %v", c.resource)
	}
	for _, r := range c.requests {
		if r.Header.Get("Api-Key") != "canary secret" || r.Header.Get("X-Scope") != "7" {
			t.Errorf("%s has the headers %v", r.URL.Path, r.Header)
		}
	}
}

// A denial is a span with the reason, and what only one signal's endpoint gets is not sent to the other.
func TestADenialIsAnErrorAndSignalsHaveEndpointsOfTheirOwn(t *testing.T) {
	t.Parallel()
	c, w := newCollector(t, nil), newWarnings()
	to := must.Get(FromEnvironment(env("EXPORTER_OTLP_TRACES_ENDPOINT", c.server.URL+"/only/traces",
		"EXPORTER_OTLP_TRACES_COMPRESSION", "gzip")))(t)
	x := Open(to, Options{Session: "s", Warn: w.add, endBound: patience})
	denied := audit.Row{Event: audit.EventSandboxRejected, Decision: audit.DecisionRejected, Reason: "host_not_allowed",
		Method: "BREW", Host: "evil.example", TS: time.Now()}
	x.Add(denied, `{"request_id":"`+audit.NewID()+`"}`)
	x.Add(audit.Row{Event: audit.EventSessionEnded, TS: time.Now()}, `{}`)
	x.Close()
	if len(c.spans) != 1 || len(c.records) != 0 || len(w.all()) != 0 {
		t.Fatalf("got %d spans, %d records and %q", len(c.spans), len(c.records), w.all())
	}
	s := c.spans[0]
	if s.GetStatus().GetCode() != tracepb.Status_STATUS_CODE_ERROR || s.GetStatus().GetMessage() != "host_not_allowed" ||
		s.GetName() != "sandbox.proxy.rejected" {
		t.Errorf("the span is %v", s)
	}
	if r := c.requests[0]; r.URL.Path != "/only/traces" || r.Header.Get("Content-Encoding") != "gzip" {
		t.Errorf("it was sent to %s with %v", r.URL.Path, r.Header)
	}
}

// What is busy for a moment gets the rows with the next attempt.
func TestABusyCollectorIsAskedAgain(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	c := newCollector(t, func(w http.ResponseWriter, _ *http.Request) bool {
		if asked.Add(1) > 1 {
			return false
		}
		w.Header().Set("Retry-After", "0")
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	})
	w := newWarnings()
	x := c.open(w, "LOGS_EXPORTER", "none")
	exchange(x, 1, proxied())
	<-c.got
	x.Close()
	if len(c.spans) != 1 || asked.Load() != 2 || len(w.all()) != 0 {
		t.Errorf("%d spans after %d requests, and the warnings %q", len(c.spans), asked.Load(), w.all())
	}
}

func TestAPartialSuccessIsCounted(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	c := newCollector(t, func(w http.ResponseWriter, _ *http.Request) bool {
		if asked.Add(1) > 1 {
			return false
		}
		out, _ := proto.Marshal(&tracecol.ExportTraceServiceResponse{PartialSuccess: &tracecol.ExportTracePartialSuccess{
			RejectedSpans: 1, ErrorMessage: "\x1b[2J"}})
		_, _ = w.Write(out)
		return true
	})
	w := newWarnings()
	x := c.open(w, "LOGS_EXPORTER", "none")
	for seq := range int64(3) {
		exchange(x, 2*seq+1, proxied())
	}
	x.Close()
	if lines := w.all(); len(lines) != 1 ||
		!strings.HasPrefix(lines[0], "1 row of the audit log was not exported to http://") ||
		!strings.Contains(lines[0], "it rejected 1 of them") || strings.Contains(lines[0], "\x1b") {
		t.Errorf("the warnings are %q", lines)
	}
}

// hang answers when the client has left.
func hang(_ http.ResponseWriter, r *http.Request) bool {
	_, _ = io.Copy(io.Discard, r.Body) // the server notices a client that leaves only then
	<-r.Context().Done()
	return true
}

// Whatever a collector does, the session gets one warning with the cause, and ends.
func TestABadCollectorCostsOneWarning(t *testing.T) {
	t.Parallel()
	elsewhere := newCollector(t, nil)
	for name, b := range map[string]struct {
		answer func(http.ResponseWriter, *http.Request) bool
		want   string
	}{
		"hangs": {hang, "it did not answer in time"},
		"refuses": {func(w http.ResponseWriter, r *http.Request) bool {
			http.Error(w, "no: "+r.Header.Get("Api-Key"), http.StatusUnauthorized)
			return true
		}, "it answered 401 Unauthorized"},
		"leads elsewhere": {func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, elsewhere.server.URL+"/v1/traces", http.StatusTemporaryRedirect)
			return true
		}, "it answered 307 Temporary Redirect"},
		"asks for a day": {func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Retry-After", "86400")
			w.WriteHeader(http.StatusTooManyRequests)
			return true
		}, "it answered 429 Too Many Requests"},
		"speaks another protocol": {func(w http.ResponseWriter, _ *http.Request) bool {
			if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
				_, _ = io.WriteString(conn, "SSH-2.0-collector\r\n")
				_ = conn.Close()
			}
			return true
		}, "malformed HTTP"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, w := newCollector(t, b.answer), newWarnings()
			if name == "hangs" {
				c.endBound = 0
			}
			x := c.open(w, "LOGS_EXPORTER", "none", "EXPORTER_OTLP_HEADERS", "api-key=canary")
			exchange(x, 1, proxied())
			x.Close()
			c.server.CloseClientConnections()
			lines := w.all()
			if len(lines) != 1 || !strings.HasPrefix(lines[0], "1 row of the audit log was not exported to http://127.0.0.1") ||
				!strings.Contains(lines[0], b.want) || strings.Contains(lines[0], "canary") {
				t.Errorf("the warnings are %q, want one about %q", lines, b.want)
			}
		})
	}
	t.Cleanup(func() {
		if len(elsewhere.requests) > 0 {
			t.Errorf("a redirect took the credential to another host: %v", elsewhere.requests[0].Header)
		}
	})
}

// A response of any size is cut off, and the rows count as accepted.
func TestAnEndlessAnswerIsCutOff(t *testing.T) {
	t.Parallel()
	var sent atomic.Int64
	ended := make(chan struct{}, 1)
	c := newCollector(t, func(w http.ResponseWriter, _ *http.Request) bool {
		defer func() { ended <- struct{}{} }()
		for piece := make([]byte, 64<<10); sent.Load() < 1<<30; {
			n, err := w.Write(piece)
			sent.Add(int64(n))
			if err != nil {
				break
			}
		}
		return true
	})
	w := newWarnings()
	x := c.open(w, "LOGS_EXPORTER", "none")
	exchange(x, 1, proxied())
	x.Close()
	<-ended
	if n := sent.Load(); n >= 1<<28 || len(w.all()) != 0 {
		t.Errorf("the collector sent %d bytes, and the warnings are %q", n, w.all())
	}
}

// The first failure of a running session is a warning at once; later ones are only counted.
func TestADeadCollectorIsReportedOnce(t *testing.T) {
	t.Parallel()
	c := newCollector(t, func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusBadRequest)
		return true
	})
	w := newWarnings()
	x := c.open(w)
	for seq := range int64(maxBatch + 1) {
		exchange(x, 2*seq+1, proxied())
	}
	<-w.first
	x.Close()
	lines := w.all()
	if len(lines) != 2 || !strings.Contains(lines[0], "rows of the audit log are not exported to") ||
		!strings.Contains(lines[0], "400 Bad Request") ||
		!strings.HasPrefix(lines[1], fmt.Sprintf("%d rows of the audit log were not exported to", maxBatch+1)) ||
		strings.Contains(lines[1], "400") {
		t.Errorf("the warnings are %q", lines)
	}
}

// A collector that does not answer fills the queue, and what does not fit is counted and not waited for.
func TestAFullQueueDropsAndCounts(t *testing.T) {
	t.Parallel()
	c := newCollector(t, hang)
	c.endBound = 0
	w := newWarnings()
	x := c.open(w, "TRACES_EXPORTER", "none")
	const rows = 3 * maxQueue
	fields := `{"error":"` + strings.Repeat("x", 4<<10) + `"}`
	for seq := range int64(rows) {
		x.Add(audit.Row{Seq: seq + 1, TS: time.Now(), Event: audit.EventSessionEnded}, fields)
	}
	if held := x.bytes.Load(); held > maxQueueBytes {
		t.Errorf("the queue holds %d bytes, want at most %d", held, maxQueueBytes)
	}
	x.Close()
	if lines := w.all(); len(lines) != 1 ||
		!strings.HasPrefix(lines[0], fmt.Sprintf("%d rows of the audit log were not exported", rows)) {
		t.Errorf("the warnings are %q, want one with all %d rows", lines, rows)
	}
}

// A proxy of the environment may be the one of a session, and is not asked.
func TestTheProxyOfTheEnvironmentIsNotUsed(t *testing.T) {
	var asked atomic.Int32
	proxy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer proxy.Close()
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY"} {
		t.Setenv(name, proxy.URL)
	}
	c := newCollector(t, nil)
	// Go's own rule exempts loopback addresses, so the name of the collector is another one.
	u := newUploader(mustEndpoint(t, "http://collector.example:4318"), "1", make(chan struct{}))
	transport := u.client.Transport.(*http.Transport) //nolint:forcetypeassert // newUploader makes it
	if transport.Proxy != nil {
		t.Error("the transport asks the environment for a proxy")
	}
	x := c.open(newWarnings())
	exchange(x, 1, proxied())
	x.Close()
	if len(c.spans) != 1 || asked.Load() != 0 {
		t.Errorf("%d spans came, and the proxy was asked %d times", len(c.spans), asked.Load())
	}
}

func mustEndpoint(t *testing.T, at string) *endpoint {
	t.Helper()
	to := must.Get(FromEnvironment(env("EXPORTER_OTLP_ENDPOINT", at)))(t)
	return to.traces
}

// The roots of the variable verify the collector, and without it those of the system do.
func TestTheCollectorIsVerified(t *testing.T) {
	t.Parallel()
	c, w := newCollector(t, nil), newWarnings()
	secure := httptest.NewUnstartedServer(c)
	secure.Config.ErrorLog = nil
	secure.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	secure.StartTLS()
	t.Cleanup(secure.Close)
	roots := filepath.Join(t.TempDir(), "roots.pem")
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})
	must.Do(t, os.WriteFile(roots, certificate, 0o600))
	for _, more := range [][]string{nil, {"EXPORTER_OTLP_CERTIFICATE", roots}} {
		to := must.Get(FromEnvironment(env(append([]string{"EXPORTER_OTLP_ENDPOINT", secure.URL, "LOGS_EXPORTER", "none"},
			more...)...)))(t)
		x := Open(to, Options{Warn: w.add, endBound: patience})
		exchange(x, 1, proxied())
		x.Close()
	}
	if lines := w.all(); len(c.spans) != 1 || len(lines) != 1 || !strings.Contains(lines[0], "unknown authority") {
		t.Errorf("%d spans came, and the warnings are %q; want one of each", len(c.spans), lines)
	}
}

// The end of a session waits for a collector that nothing listens for as little as for any other.
func TestAnExporterWithoutRowsSendsNothing(t *testing.T) {
	t.Parallel()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	_ = l.Close()
	to := must.Get(FromEnvironment(env("EXPORTER_OTLP_ENDPOINT", "http://"+l.Addr().String())))(t)
	w := newWarnings()
	Open(to, Options{Warn: w.add}).Close()
	if lines := w.all(); len(lines) != 0 {
		t.Errorf("the warnings are %q", lines)
	}
	(*Exporter)(nil).Close()
}
