package otlp

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	logspb "go.opentelemetry.io/proto/otlp/logs/v1"
	"google.golang.org/protobuf/proto"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/durable"
	"github.com/ALRubinger/aileron/internal/ship"
)

// Schemes are the schemes of the URLs that NewTarget reads.
var Schemes = []string{"otlp+http", "otlp+https"}

// LogTarget sends rows to a collector as log records, with the semantic conventions of OpenTelemetry where it has one
// for a column. A collector cannot be asked what it has: the newest row that it accepted is in a file of the home, so a
// process that is killed between the two sends rows again.
type LogTarget struct {
	logs   *logClient
	cursor string // a file
	report func(format string, args ...any)
}

var _ ship.Target = (*LogTarget)(nil)

// NewTarget returns the target of a URL: otlp+https://HOST:PORT/PATH, where an empty path is /v1/logs. The variables of
// OpenTelemetry but those of its endpoint apply to it.
func NewTarget(u *url.URL, env Environment, home, version string, report func(string, ...any)) (*LogTarget, error) {
	at := *u
	at.Scheme = strings.TrimPrefix(u.Scheme, "otlp+")
	at.Path = cmp.Or(strings.TrimSuffix(u.Path, "/"), "/v1/logs")
	set := func(name string) string {
		switch name {
		case "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT":
			return at.String()
		case "OTEL_LOGS_EXPORTER":
			return ""
		}
		return env(name)
	}
	e, err := readSignal(set, "LOGS")
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(at.Scheme + "://" + at.Host + at.Path))
	t := &LogTarget{cursor: filepath.Join(home, "audit.shipped-"+hex.EncodeToString(sum[:4])), report: report}
	once := make(chan struct{})
	close(once) // the shipper tries again, and not the uploader
	t.logs = newLogClient(newUploader(e, version, once), resourceOf(Options{Version: version}), version)
	return t, nil
}

// String returns the scheme and the host of the collector.
func (t *LogTarget) String() string { return "otlp " + t.logs.name() }

// MaxBytes returns how many bytes of rows a request has at most.
func (t *LogTarget) MaxBytes() int { return maxBatchBytes }

// Close implements [ship.Target].
func (t *LogTarget) Close() { t.logs.client.CloseIdleConnections() }

// shipped is the content of the cursor.
type shipped struct {
	Target string `json:"target"`
	Origin string `json:"origin"`
	Seq    int64  `json:"seq"`
	Hash   string `json:"hash"`
}

// Head implements [ship.Target].
func (t *LogTarget) Head(_ context.Context, o ship.Origin) (head audit.Head, err error) {
	raw, err := os.ReadFile(t.cursor)
	if errors.Is(err, fs.ErrNotExist) {
		return head, nil
	}
	var s shipped
	if err == nil {
		err = json.Unmarshal(raw, &s)
	}
	if err != nil {
		return head, ship.Refusef("read what was shipped to %s: %w", t, err)
	}
	if s.Origin != o.ID {
		return head, nil // of another key: the collector has none of this log
	}
	return audit.Head{Seq: s.Seq, Hash: s.Hash}, nil
}

// Send implements [ship.Target]. Rows that the collector rejects although it accepts the request are reported, and not
// sent again.
func (t *LogTarget) Send(ctx context.Context, b *ship.Batch) error {
	head := b.Head()
	records := make([]*logspb.LogRecord, len(b.Rows))
	for i := range b.Rows {
		records[i] = recordOf(b.Origin.ID, &b.Rows[i])
	}
	message, err := proto.Marshal(&logspb.LogsData{ResourceLogs: []*logspb.ResourceLogs{{Resource: t.logs.resource,
		ScopeLogs: []*logspb.ScopeLogs{{Scope: scopeOf(t.logs.scope, b), LogRecords: records}}}}})
	if err != nil {
		return ship.Refusef("encode rows %d to %d: %w", b.Rows[0].Seq, head.Seq, err)
	}
	rejected, err := t.logs.send(ctx, message)
	switch {
	case err != nil && !mayTryAgain(err):
		return ship.Refusef("send rows %d to %d to %s: %w", b.Rows[0].Seq, head.Seq, t, err)
	case err != nil:
		return fmt.Errorf("send rows %d to %d to %s: %w", b.Rows[0].Seq, head.Seq, t, err)
	case rejected > 0:
		t.report("aileron: warning: %s rejected %d of rows %d to %d; the log has them", t, rejected, b.Rows[0].Seq, head.Seq)
	}
	raw, err := json.Marshal(shipped{t.logs.name(), b.Origin.ID, head.Seq, head.Hash})
	if err != nil {
		return err
	}
	return durable.Replace(t.cursor, append(raw, '\n'))
}

// scopeOf returns the scope of a batch, with the head of the chain.
func scopeOf(scope *commonpb.InstrumentationScope, b *ship.Batch) *commonpb.InstrumentationScope {
	head := b.Head()
	all := []attribute.KeyValue{attribute.String("aileron.origin", b.Origin.ID),
		attribute.String("aileron.key", b.Origin.Key), attribute.Int64("aileron.head.seq", head.Seq),
		attribute.String("aileron.head.hash", head.Hash)}
	if b.Note != "" {
		all = append(all, attribute.String("aileron.head.note", b.Note))
	}
	if g := b.Gap; g != nil {
		all = append(all, attribute.Int64("aileron.gap.first", g.First), attribute.Int64("aileron.gap.last", g.Last),
			attribute.String("aileron.gap.reason", g.Reason))
	}
	return &commonpb.InstrumentationScope{Name: scope.Name, Version: scope.Version, Attributes: pairs(all)}
}

// conventions are the names of columns of which OpenTelemetry has one, and of the others. Those of numbers are with #.
var conventions = map[string]string{
	"id": "aileron.id", "session_id": "session.id", "source": "aileron.source", "decision": "aileron.decision",
	"reason": "error.type", "connector_fqn": "aileron.connector.fqn", "connector_version": "aileron.connector.version",
	"tool": "aileron.tool", "operation": "aileron.operation", "binding": "aileron.binding",
	"method": "http.request.method", "scheme": "url.scheme", "host": "server.address", "port": "#server.port",
	"path": "url.path", "http_version": "network.protocol.version", "status": "#http.response.status_code",
	"request_bytes": "#http.request.body.size", "response_bytes": "#http.response.body.size",
	"redactions": "#aileron.redactions", "duration_us": "#aileron.duration_us",
}

// recordOf returns the log record of a row.
func recordOf(origin string, r *audit.StoredRow) *logspb.LogRecord {
	all := []attribute.KeyValue{attribute.String("aileron.origin", origin), attribute.Int64("aileron.seq", r.Seq),
		attribute.String("aileron.prev_hash", r.Prev), attribute.String("aileron.hash", r.Hash)}
	for i, column := range audit.StoredColumns() {
		value := r.Values[i]
		name, isNumber := strings.CutPrefix(conventions[column], "#")
		switch {
		case name == "" || value == "":
		case isNumber:
			if n, err := strconv.ParseInt(value, 10, 64); err == nil && n != 0 {
				all = append(all, attribute.Int64(name, n))
			}
		case name == "http.request.method" && methodOf(value) == "":
			all = append(all, attribute.String(name, "_OTHER"), attribute.String(name+"_original", cut(value)))
		case name == "network.protocol.version":
			all = append(all, attribute.String("network.protocol.name", "http"),
				attribute.String(name, cut(strings.TrimPrefix(value, "HTTP/"))))
		default:
			all = append(all, attribute.String(name, cut(value)))
		}
	}
	fields := map[string]any{}
	_ = json.Unmarshal([]byte(r.Fields), &fields) // the log wrote it
	for name, value := range fields {
		all = append(all, fieldOf("aileron.fields."+name, value))
	}
	severity := severityOf(r.Event())
	request, _ := fields["request_id"].(string)
	record := &logspb.LogRecord{
		TimeUnixNano: uint64(max(r.Ts, 0)), ObservedTimeUnixNano: nanoseconds(time.Now()), EventName: string(r.Event()),
		SeverityNumber: severity, SeverityText: severityText[severity],
		Body:       &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: string(r.Event())}},
		Attributes: pairs(all),
	}
	if t, s := idsOf(request); t.IsValid() {
		record.TraceId, record.SpanId = t[:], s[:]
	}
	return record
}
