package auditpage

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/review"
)

// chunkRows is the number of rows that a page loads at once.
const chunkRows = 128

// maxText bounds each text of a row in a list.
const maxText = 400

// line is a row in a list.
type line struct {
	Seq        int64     `json:"seq"`
	ID         string    `json:"id"`
	TS         time.Time `json:"ts"`
	Event      string    `json:"event"`
	Session    string    `json:"session,omitempty"`
	Agent      string    `json:"agent,omitempty"`
	Decision   string    `json:"decision,omitempty"`
	Reason     string    `json:"reason,omitempty"`
	Connector  string    `json:"connector,omitempty"`
	Operation  string    `json:"operation,omitempty"`
	Binding    string    `json:"binding,omitempty"`
	Method     string    `json:"method,omitempty"`
	Host       string    `json:"host,omitempty"`
	Path       string    `json:"path,omitempty"`
	Subject    string    `json:"subject,omitempty"` // of a row that is about no request
	Status     int       `json:"status,omitempty"`
	Bytes      int64     `json:"bytes,omitempty"`
	US         int64     `json:"us,omitempty"`
	Redactions int       `json:"redactions,omitempty"`
	Requests   int64     `json:"requests,omitempty"` // that the row counts
}

// line returns a row as a list shows it.
func (p *Page) line(ctx context.Context, l *openLog, r audit.Row) line {
	text := func(s string) string { return bounded(s, maxText) }
	host, subject := r.Host, ""
	if r.Port != 443 && r.Port != 0 && host != "" {
		host = text(host) + ":" + strconv.Itoa(r.Port)
	}
	if r.Host == "" && r.Method == "" {
		subject = review.Subject(r)
	}
	counted, _ := cmp.Or(r.Fields["requests"], r.Fields["connections"]).(float64)
	return line{
		Seq: r.Seq, ID: text(r.ID), TS: r.TS, Event: text(string(r.Event)), Session: text(r.SessionID),
		Agent: p.agents.of(ctx, l, r), Decision: text(string(r.Decision)), Reason: text(r.Reason),
		Connector: text(r.ConnectorFQN), Operation: text(r.Operation), Binding: text(r.Binding), Method: text(r.Method),
		Host: text(host), Path: text(r.Path), Subject: text(subject), Status: r.Status, Bytes: r.ResponseBytes,
		US: r.DurationUS, Redactions: r.Redactions, Requests: int64(counted),
	}
}

// maxWaiting bounds the requests without an outcome that a page shows.
const maxWaiting = 200

// fold makes each request one row, that of its outcome, unless the query of r has "rows" or asks for intents.
func fold(r *http.Request, filter *audit.Filter) {
	filter.NoIntents = !r.URL.Query().Has("rows") && filter.Event != audit.EventProxyStarted
}

// waiting responds with the selected requests that no outcome stands for, newest first: all that are under way, and
// those without an outcome among the newest rows.
func (p *Page) waiting(w http.ResponseWriter, r *http.Request) error {
	l, filter, done, err := p.selected(r)
	if err != nil {
		return err
	}
	defer done()
	filter.Limit, filter.Newest = maxWaiting, true
	found, err := review.FindUnfinished(r.Context(), l.Log, &filter)
	if err != nil {
		return err
	}
	lines := []line{}
	for _, row := range slices.Backward(slices.Concat(found.Ended, found.Waiting)) {
		shown := p.line(r.Context(), l, row.Row)
		shown.Decision = review.DecisionOf(row)
		lines = append(lines, shown)
	}
	return writeJSON(w, map[string]any{"rows": lines})
}

// errEnough ends a read of the log early. It is not a failure.
var errEnough = errors.New("enough")

// rows responds with the newest chunkRows selected rows, newest first.
func (p *Page) rows(w http.ResponseWriter, r *http.Request) error {
	l, filter, done, err := p.selected(r)
	if err != nil {
		return err
	}
	defer done()
	fold(r, &filter)
	lines := make([]line, 0, chunkRows)
	filter.Limit, filter.Newest = chunkRows, true
	err = l.Each(r.Context(), filter, func(row audit.Row) error {
		lines = append(lines, p.line(r.Context(), l, row))
		return nil
	})
	if err != nil {
		return err
	}
	slices.Reverse(lines)
	return writeJSON(w, map[string]any{"rows": lines})
}
