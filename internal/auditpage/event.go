package auditpage

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/review"
)

// Bounds of what is shown of one row.
const (
	maxValue  = 4096
	maxFields = 64
)

// pair is a name and a value that a page shows.
type pair struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// part is one row in full.
type part struct {
	Seq     int64  `json:"seq"`
	ID      string `json:"id"`
	Event   string `json:"event"`
	Columns []pair `json:"columns"`
}

// event responds with the row of a number, the other row of its request, and their story.
func (p *Page) event(w http.ResponseWriter, r *http.Request) error {
	l, done, err := p.logs.open()
	if err != nil {
		return err
	}
	defer done()
	row, err := rowOf(r, l.Log)
	if err != nil {
		return err
	}
	story, err := review.Tell(r.Context(), l.Log, row)
	if err != nil {
		return err
	}
	if p.opts.Explain != nil {
		p.opts.Explain(&story)
	}
	parts := []part{}
	for _, one := range []*audit.Row{story.Intent, &row, story.Outcome} {
		if one != nil {
			parts = append(parts, part{one.Seq, bounded(one.ID, maxText), bounded(string(one.Event), maxText), columns(*one)})
		}
	}
	return writeJSON(w, map[string]any{"line": p.line(r.Context(), l, row), "parts": parts, "story": told(story)})
}

// told returns the lines of a story, bounded.
func told(story review.Story) []pair {
	shown := []pair{}
	lines := story.Lines()
	for _, line := range lines[:min(len(lines), maxFields)] {
		shown = append(shown, pair{bounded(line.Name, maxText), cut(line.Text)})
	}
	return shown
}

// rowOf returns the row whose number is in the query of a request.
func rowOf(r *http.Request, l *audit.Log) (audit.Row, error) {
	seq, err := number(r.URL.Query(), "seq")
	if err != nil {
		return audit.Row{}, err
	}
	rows, err := l.List(r.Context(), audit.Filter{AfterSeq: seq - 1, ThroughSeq: max(1, seq), Limit: 1})
	if err == nil && (len(rows) == 0 || rows[0].Seq != seq) {
		err = badQuery{fmt.Sprintf("the log has no row %d", seq)}
	}
	if err != nil {
		return audit.Row{}, err
	}
	return rows[0], nil
}

// columns returns all that a row has, each value bounded.
func columns(r audit.Row) []pair {
	shown := []pair{
		{"seq", strconv.FormatInt(r.Seq, 10)}, {"id", r.ID}, {"ts", r.TS.Format(time.RFC3339Nano)},
		{"event", string(r.Event)},
		{"session_id", r.SessionID}, {"source", string(r.Source)}, {"decision", string(r.Decision)}, {"reason", r.Reason},
		{"connector_fqn", r.ConnectorFQN}, {"connector_version", r.ConnectorVersion}, {"tool", r.Tool},
		{"operation", r.Operation}, {"binding", r.Binding}, {"method", r.Method}, {"scheme", r.Scheme}, {"host", r.Host},
		{"port", positive(int64(r.Port))}, {"path", r.Path}, {"http_version", r.HTTPVersion},
		{"status", positive(int64(r.Status))}, {"request_bytes", positive(r.RequestBytes)},
		{"response_bytes", positive(r.ResponseBytes)}, {"redactions", positive(int64(r.Redactions))},
		{"duration_us", positive(r.DurationUS)},
	}
	names := slices.Sorted(maps.Keys(r.Fields))
	for _, name := range names[:min(len(names), maxFields)] {
		shown = append(shown, pair{"fields." + name, valueText(r.Fields[name])})
	}
	if more := len(names) - maxFields; more > 0 {
		shown = append(shown, pair{"fields", fmt.Sprintf("and %d more: aileron audit show has all", more)})
	}
	shown = append(shown, pair{"prev_hash", r.PrevHash}, pair{"hash", r.Hash})
	shown = slices.DeleteFunc(shown, func(s pair) bool { return s.Value == "" })
	for i, s := range shown {
		shown[i] = pair{bounded(s.Name, maxText), cut(s.Value)}
	}
	return shown
}

// cut returns a value, or its beginning and how long it is.
func cut(value string) string {
	if len(value) <= maxValue {
		return bounded(value, maxValue)
	}
	return fmt.Sprintf("%s (%d bytes: aileron audit show has all)", bounded(value, maxValue), len(value))
}

// valueText returns a value of a row's fields: a string unchanged, anything else as JSON.
func valueText(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

// positive returns n in decimal, and "" for 0.
func positive(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}
