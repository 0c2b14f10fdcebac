package otlp

import (
	"context"
	"fmt"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	logspb "go.opentelemetry.io/proto/otlp/logs/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/ALRubinger/aileron/audit"
)

// partialError is returned for rows that the collector rejected although it accepted the request.
type partialError int

func (e partialError) Error() string { return fmt.Sprintf("it rejected %d of them", int(e)) }

// traceClient sends the spans of an otlptrace.Exporter.
type traceClient struct {
	*uploader
	rejected int // of the last request
	err      error
}

// UploadTraces implements otlptrace.Client. TracesData has the bytes of ExportTraceServiceRequest.
func (c *traceClient) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	message, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	if err == nil {
		c.rejected, err = c.send(ctx, message)
	}
	c.err = err
	return err
}

// Start implements otlptrace.Client.
func (*traceClient) Start(context.Context) error { return nil }

// Stop implements otlptrace.Client.
func (*traceClient) Stop(context.Context) error { return nil }

// lost returns how many of n spans the last request lost.
func (c *traceClient) lost(n int, err error) int {
	if err != nil {
		return n
	}
	return min(c.rejected, n)
}

// partial returns an error if the last request lost some.
func (c *traceClient) partial() error {
	if c.rejected > 0 {
		return partialError(c.rejected)
	}
	return nil
}

// logClient sends log records.
type logClient struct {
	*uploader
	resource *resourcepb.Resource
	scope    *commonpb.InstrumentationScope
}

func newLogClient(u *uploader, res *resource.Resource, version string) *logClient {
	return &logClient{uploader: u, resource: &resourcepb.Resource{Attributes: pairs(res.Attributes())},
		scope: &commonpb.InstrumentationScope{Name: scope, Version: version}}
}

// export sends records, and returns how many were lost. LogsData has the bytes of ExportLogsServiceRequest.
func (c *logClient) export(ctx context.Context, records []*logspb.LogRecord) (lost int, err error) {
	message, err := proto.Marshal(&logspb.LogsData{ResourceLogs: []*logspb.ResourceLogs{{Resource: c.resource,
		ScopeLogs: []*logspb.ScopeLogs{{Scope: c.scope, LogRecords: records}}}}})
	if err == nil {
		lost, err = c.send(ctx, message)
	}
	switch {
	case err != nil:
		return len(records), err
	case lost > 0:
		return min(lost, len(records)), partialError(lost)
	}
	return 0, nil
}

// record adds a log record for a row. One that is about a request has the ids of its span.
func (b *batch) record(r *audit.Row, fields map[string]any, request string) {
	if b.logs == nil {
		return
	}
	severity := severityOf(r.Event)
	record := &logspb.LogRecord{
		TimeUnixNano: nanoseconds(r.TS), ObservedTimeUnixNano: nanoseconds(time.Now()), EventName: string(r.Event),
		SeverityNumber: severity, SeverityText: severityText[severity],
		Body:       &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: string(r.Event)}},
		Attributes: pairs(attributesOf(r, fields)),
	}
	if t, s := idsOf(request); t.IsValid() {
		record.TraceId, record.SpanId = t[:], s[:]
	}
	b.records = append(b.records, record)
}

// severityOf returns how bad an event is for the person who looks at it.
func severityOf(e audit.Event) logspb.SeverityNumber {
	switch {
	case e == audit.EventBroken:
		return logspb.SeverityNumber_SEVERITY_NUMBER_ERROR
	case strings.HasSuffix(string(e), "failed"), e == audit.EventRecovered, e == audit.EventProxyUnknown,
		e == audit.EventSandboxRejected, e == audit.EventSandboxDisabled:
		return logspb.SeverityNumber_SEVERITY_NUMBER_WARN
	}
	return logspb.SeverityNumber_SEVERITY_NUMBER_INFO
}

var severityText = map[logspb.SeverityNumber]string{
	logspb.SeverityNumber_SEVERITY_NUMBER_ERROR: "ERROR", logspb.SeverityNumber_SEVERITY_NUMBER_WARN: "WARN",
	logspb.SeverityNumber_SEVERITY_NUMBER_INFO: "INFO",
}

// nanoseconds returns a time as OTLP has it; one before 1970 is 0.
func nanoseconds(t time.Time) uint64 { return uint64(max(t.UnixNano(), 0)) }

// pairs returns attributes as protobufs.
func pairs(attributes []attribute.KeyValue) []*commonpb.KeyValue {
	all := make([]*commonpb.KeyValue, 0, len(attributes))
	for _, kv := range attributes {
		all = append(all, &commonpb.KeyValue{Key: string(kv.Key), Value: valueOf(kv.Value)})
	}
	return all
}

// valueOf returns a value of one of the types that rows and resources have.
func valueOf(v attribute.Value) *commonpb.AnyValue {
	switch v.Type() {
	case attribute.BOOL:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_BoolValue{BoolValue: v.AsBool()}}
	case attribute.INT64:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: v.AsInt64()}}
	case attribute.FLOAT64:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_DoubleValue{DoubleValue: v.AsFloat64()}}
	case attribute.STRINGSLICE:
		list := &commonpb.ArrayValue{}
		for _, text := range v.AsStringSlice() {
			list.Values = append(list.Values, &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: text}})
		}
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_ArrayValue{ArrayValue: list}}
	}
	return &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: v.AsString()}}
}
