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

// errEnough ends a reading that has all that it needs.
var errEnough = errors.New("enough")

// rows answers with the newest chunkRows selected rows, newest first.
func (p *Page) rows(w http.ResponseWriter, r *http.Request) error {
	l, filter, done, err := p.selected(r)
	if err != nil {
		return err
	}
	defer done()
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

// Windows of a search, in rows: small at first, so that a page has something to show, and bounded, because an open
// reading holds back the checkpoints of the log.
const (
	firstWindow = 1 << 12
	lastWindow  = 1 << 17
)

// eachWindow calls f for ranges of numbers, the newest first, that cover those of the filter.
func eachWindow(filter audit.Filter, newest int64, f func(audit.Filter) error) error {
	through := newest
	if filter.ThroughSeq > 0 {
		through = min(through, filter.ThroughSeq)
	}
	for size := int64(firstWindow); through > filter.AfterSeq; size = min(4*size, lastWindow) {
		part := filter
		part.ThroughSeq, part.AfterSeq = through, max(filter.AfterSeq, through-size)
		if err := f(part); err != nil {
			return err
		}
		through = part.AfterSeq
	}
	return nil
}

// found is a line of the answer of chunks: some chunks, each its highest number, its lowest and how many selected rows
// are there; the number to which the search has come; and whether it has ended.
type found struct {
	Chunks [][3]int64 `json:"chunks"`
	At     int64      `json:"at"`
	Done   bool       `json:"done,omitempty"`
	problem
}

// chunks answers with where the selected rows are, newest first: a list of a million rows is a few thousand numbers.
func (p *Page) chunks(w http.ResponseWriter, r *http.Request) error {
	end, err := p.searching(r.Context())
	if err != nil {
		return err
	}
	defer end()
	l, filter, done, err := p.selected(r)
	if err != nil {
		return err
	}
	defer done()
	_, newest, err := ends(r.Context(), l.Log)
	if err != nil {
		return err
	}
	out := newStream(w)
	err = eachWindow(filter, newest, func(part audit.Filter) error {
		step := found{Chunks: [][3]int64{}, At: part.AfterSeq}
		err := l.EachSeq(r.Context(), part, func(seq int64) error {
			if n := len(step.Chunks); n == 0 || step.Chunks[n-1][2] == chunkRows {
				step.Chunks = append(step.Chunks, [3]int64{seq, seq, 1})
				return nil
			}
			last := &step.Chunks[len(step.Chunks)-1]
			last[1] = seq
			last[2]++
			return nil
		})
		if err != nil {
			return err
		}
		return out.send(step)
	})
	last := found{Chunks: [][3]int64{}, Done: err == nil}
	if err != nil {
		last.Error, last.Hint = describe(err)
	}
	return out.send(last)
}
