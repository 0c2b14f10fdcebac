package otlp

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	logspb "go.opentelemetry.io/proto/otlp/logs/v1"

	"github.com/ALRubinger/aileron/audit"
)

// maxPending bounds the intents whose outcome is waited for. One more is a log record of its own.
const maxPending = 4096

// batch makes spans and log records of rows, and sends them together.
type batch struct {
	spans   spanSink
	ids     ids
	tracer  trace.Tracer // nil: no spans are exported
	traces  *otlptrace.Exporter
	client  *traceClient
	records []*logspb.LogRecord
	logs    *logClient // nil: no log records are exported
	pending map[string]item
	bytes   int64
}

func newBatch(t Target, o Options, closing <-chan struct{}) *batch {
	b := &batch{pending: map[string]item{}}
	res := resourceOf(o)
	if t.traces != nil {
		b.client = &traceClient{uploader: newUploader(t.traces, o.Version, closing)}
		b.traces = otlptrace.NewUnstarted(b.client)
		b.tracer = sdktrace.NewTracerProvider(sdktrace.WithResource(res), sdktrace.WithIDGenerator(&b.ids),
			sdktrace.WithSpanProcessor(&b.spans)).Tracer(scope, trace.WithInstrumentationVersion(o.Version))
	}
	if t.logs != nil {
		b.logs = newLogClient(newUploader(t.logs, o.Version, closing), res, o.Version)
	}
	return b
}

// scope is the name of what makes the spans and the log records.
const scope = "github.com/ALRubinger/aileron/audit"

// resourceOf describes the session. OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES take precedence.
func resourceOf(o Options) *resource.Resource {
	own := resource.NewSchemaless(attribute.String("service.name", "aileron"),
		attribute.String("service.version", o.Version), attribute.String("service.instance.id", o.Session))
	res, err := resource.New(context.Background(), resource.WithFromEnv())
	if err != nil {
		return own
	}
	if res, err = resource.Merge(own, res); err != nil {
		return own
	}
	return res
}

// close closes the connections.
func (b *batch) close() {
	if b.client != nil {
		b.client.uploader.client.CloseIdleConnections()
	}
	if b.logs != nil {
		b.logs.client.CloseIdleConnections()
	}
}

func (b *batch) full() bool {
	return len(b.spans.ended)+len(b.records) >= maxBatch || b.bytes >= maxBatchBytes
}

// add adds a row. An intent waits for its outcome.
func (b *batch) add(it item) {
	fields := map[string]any{}
	_ = json.Unmarshal([]byte(it.fields), &fields) // the log wrote it
	b.bytes += it.size()
	request, _ := fields["request_id"].(string)
	switch {
	case b.tracer == nil:
		b.record(&it.row, fields, request)
	case it.row.Event == audit.EventProxyStarted && request != "" && len(b.pending) < maxPending:
		b.pending[request] = it
	case isRequest(&it.row, fields):
		intent, known := b.pending[request]
		delete(b.pending, request)
		b.span(&it.row, fields, request)
		if known {
			b.spans.intent(&intent.row)
		}
		b.spans.end(it.row.TS)
	default:
		b.record(&it.row, fields, request)
	}
}

// addPending adds the intents that have no outcome, as log records.
func (b *batch) addPending() {
	for request, it := range b.pending {
		delete(b.pending, request)
		fields := map[string]any{}
		_ = json.Unmarshal([]byte(it.fields), &fields)
		b.record(&it.row, fields, request)
	}
}

// span begins the span of a request.
func (b *batch) span(r *audit.Row, fields map[string]any, request string) {
	b.ids.trace, b.ids.span = idsOf(request)
	name := cmp.Or(strings.TrimSpace(r.Tool+" "+r.Operation), methodOf(r.Method), string(r.Event))
	start := r.TS.Add(-time.Duration(r.DurationUS) * time.Microsecond)
	_, s := b.tracer.Start(context.Background(), name, trace.WithNewRoot(), trace.WithTimestamp(start),
		trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attributesOf(r, fields)...))
	if r.Reason != "" && r.Reason != "tunnel_host" {
		s.SetStatus(codes.Error, r.Reason)
	}
	b.spans.open = s
}

// methodOf returns a method as the name of a span. A client may send any number of others.
func methodOf(method string) string {
	switch method {
	case "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT":
		return method
	}
	return ""
}

// send sends the batch, and returns how many rows were not accepted. It is empty afterwards.
func (b *batch) send(ctx context.Context) (lost int, err error) {
	spans, records := b.spans.ended, b.records
	b.spans.ended, b.records, b.bytes = nil, nil, 0
	if len(spans) > 0 {
		err = b.traces.ExportSpans(ctx, spans)
		lost += b.client.lost(len(spans), err)
		if err == nil {
			err = b.client.partial()
		} else {
			err = b.client.err // without the exporter's prefix
		}
	}
	if len(records) > 0 {
		n, logsErr := b.logs.export(ctx, records)
		if lost += n; err == nil {
			err = logsErr
		}
	}
	return lost, err
}

// idsOf returns the ids of a request's trace and span: the 16 bytes of its id, and the last 8 of these. An id that a
// client sends, in traceparent, is not read: an agent could put its requests into the traces of others.
func idsOf(request string) (t trace.TraceID, s trace.SpanID) {
	id, err := ulid.ParseStrict(request)
	if err != nil {
		return t, s
	}
	t = trace.TraceID(id)
	copy(s[:], id[8:])
	return t, s
}

// ids is the generator of the ids of the next span.
type ids struct {
	trace trace.TraceID
	span  trace.SpanID
}

// NewIDs implements sdktrace.IDGenerator.
func (g *ids) NewIDs(context.Context) (trace.TraceID, trace.SpanID) { return g.trace, g.span }

// NewSpanID implements sdktrace.IDGenerator.
func (g *ids) NewSpanID(context.Context, trace.TraceID) trace.SpanID { return g.span }

// spanSink keeps the spans that have ended.
type spanSink struct {
	open  trace.Span
	ended []sdktrace.ReadOnlySpan
}

// intent adds the row of the intent as an event of the open span.
func (s *spanSink) intent(r *audit.Row) {
	s.open.AddEvent(string(r.Event), trace.WithTimestamp(r.TS), trace.WithAttributes(attribute.Int64("seq", r.Seq),
		attribute.String("id", r.ID), attribute.String("prev_hash", r.PrevHash), attribute.String("hash", r.Hash)))
}

func (s *spanSink) end(at time.Time) { s.open.End(trace.WithTimestamp(at)) }

// OnStart implements sdktrace.SpanProcessor.
func (*spanSink) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

// OnEnd implements sdktrace.SpanProcessor.
func (s *spanSink) OnEnd(span sdktrace.ReadOnlySpan) { s.ended = append(s.ended, span) }

// Shutdown implements sdktrace.SpanProcessor.
func (*spanSink) Shutdown(context.Context) error { return nil }

// ForceFlush implements sdktrace.SpanProcessor.
func (*spanSink) ForceFlush(context.Context) error { return nil }
