package otlp

import (
	"encoding/json"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"

	"github.com/ALRubinger/aileron/audit"
)

// maxText is the longest text of an attribute. A longer one is cut.
const maxText = 16 << 10

// attributesOf returns the columns of a row but its time. One that is empty or 0 is left out.
func attributesOf(r *audit.Row, fields map[string]any) []attribute.KeyValue {
	all := make([]attribute.KeyValue, 0, 32)
	for _, c := range []struct{ name, value string }{
		{"id", r.ID}, {"event", string(r.Event)}, {"session_id", r.SessionID}, {"source", string(r.Source)},
		{"decision", string(r.Decision)}, {"reason", r.Reason}, {"connector_fqn", r.ConnectorFQN},
		{"connector_version", r.ConnectorVersion}, {"tool", r.Tool}, {"operation", r.Operation}, {"binding", r.Binding},
		{"method", r.Method}, {"scheme", r.Scheme}, {"host", r.Host}, {"path", r.Path}, {"http_version", r.HTTPVersion},
		{"prev_hash", r.PrevHash}, {"hash", r.Hash},
	} {
		if c.value != "" {
			all = append(all, attribute.String(c.name, cut(c.value)))
		}
	}
	for _, c := range []struct {
		name  string
		value int64
	}{
		{"seq", r.Seq}, {"port", int64(r.Port)}, {"status", int64(r.Status)}, {"request_bytes", r.RequestBytes},
		{"response_bytes", r.ResponseBytes}, {"redactions", int64(r.Redactions)}, {"duration_us", r.DurationUS},
	} {
		if c.value != 0 {
			all = append(all, attribute.Int64(c.name, c.value))
		}
	}
	for name, value := range fields {
		all = append(all, fieldOf("fields."+name, value))
	}
	return all
}

// fieldOf returns a field. What is neither a text, a number, a bool nor a list of texts is JSON.
func fieldOf(name string, value any) attribute.KeyValue {
	switch v := value.(type) {
	case string:
		return attribute.String(name, cut(v))
	case bool:
		return attribute.Bool(name, v)
	case float64:
		if v == float64(int64(v)) {
			return attribute.Int64(name, int64(v))
		}
		return attribute.Float64(name, v)
	case []any:
		if texts, ok := textsOf(v); ok {
			return attribute.StringSlice(name, texts)
		}
	}
	raw, _ := json.Marshal(value) // it was JSON
	return attribute.String(name, cut(string(raw)))
}

func textsOf(list []any) ([]string, bool) {
	texts := make([]string, 0, len(list))
	for _, each := range list {
		text, ok := each.(string)
		if !ok {
			return nil, false
		}
		texts = append(texts, cut(text))
	}
	return texts, true
}

// cut returns a text of at most maxText bytes, in valid UTF-8 as protobufs require it.
func cut(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), maxText)], "\ufffd")
}

// isRequest reports whether r is the outcome of one request. A row that counts denials or connections is not.
func isRequest(r *audit.Row, fields map[string]any) bool {
	switch {
	case fields["request_id"] == nil, fields["requests"] != nil, fields["connections"] != nil:
		return false
	}
	return slices.Contains([]audit.Event{audit.EventProxyProxied, audit.EventProxyRejected,
		audit.EventSandboxPassthrough, audit.EventSandboxRejected}, r.Event)
}
