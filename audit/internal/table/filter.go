package table

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/ALRubinger/aileron/audit/internal/chain"
)

// Filter selects rows. An empty field selects all.
type Filter struct {
	Session         string
	Sessions        []string // any of these; nil: all
	Event           chain.Event
	Decision        chain.Decision
	Reason          string
	Host, Connector string
	Operation       string
	Binding         string
	Since, Until    time.Time // Until is exclusive
	AfterSeq        int64
	ThroughSeq      int64 // the number of the last row; 0: no bound
	Limit           int   // 0: all
	Newest          bool  // with Limit: the newest rows, still oldest first
	idPrefix        string
	NoIntents       bool // without the rows of intents
}

// Terms returns the condition that selects the rows, and its arguments.
func (f Filter) Terms() (string, []any) {
	var terms []string
	var args []any
	add := func(term string, arg any) { terms, args = append(terms, term), append(args, arg) }
	for column, value := range map[string]string{
		"session_id": f.Session, "event": string(f.Event), "decision": string(f.Decision),
		"reason": f.Reason, "host": f.Host, "connector_fqn": f.Connector, "operation": f.Operation, "binding": f.Binding,
	} {
		if value != "" {
			add(column+" = ?", value)
		}
	}
	if f.Sessions != nil {
		list, _ := json.Marshal(f.Sessions) // strings never fail
		add("session_id IN (SELECT value FROM json_each(?))", string(list))
	}
	if f.NoIntents {
		add("event <> ?", string(chain.EventProxyStarted))
	}
	if f.idPrefix != "" {
		add("id >= ?", f.idPrefix)
		add("id < ?", f.idPrefix+"\x7f")
	}
	if !f.Since.IsZero() {
		add("ts >= ?", f.Since.UTC().Format(chain.TimeFormat))
	}
	if !f.Until.IsZero() {
		add("ts < ?", f.Until.UTC().Format(chain.TimeFormat))
	}
	if f.AfterSeq > 0 {
		add("seq > ?", f.AfterSeq)
	}
	if f.ThroughSeq > 0 {
		add("seq <= ?", f.ThroughSeq)
	}
	if len(terms) == 0 {
		return "TRUE", nil
	}
	return strings.Join(terms, " AND "), args
}

// SelectsOutcomes reports whether each outcome of a selected intent is selected too: both have these columns, but for
// those that an intent, or an outcome, need not have.
func (f Filter) SelectsOutcomes() bool {
	return f.Event == "" && f.Decision == "" && f.Reason == "" && f.Binding == "" && f.Until.IsZero() && f.Limit == 0 &&
		!f.NoIntents
}

// idSlack is how far the ts of a row may be before the time of its id, or out of the order of seq.
const idSlack = 10 * time.Second

// seqAt returns, by binary search, the number of the first row at or after t. If clocks ran backwards, it is a guess.
func (s *snapshot) seqAt(ctx context.Context, t time.Time) (int64, error) {
	low, high := max(1, s.first), max(1, s.newest)
	const next = "SELECT seq, ts FROM events WHERE seq >= ? ORDER BY seq LIMIT 1"
	for low < high {
		var seq int64
		var ts string
		middle := low + (high-low)/2
		if err := s.Conn.QueryRowContext(ctx, next, middle).Scan(&seq, &ts); err != nil {
			return 0, fmt.Errorf("read the audit log: %w", err)
		}
		if ts < t.UTC().Format(chain.TimeFormat) {
			low = seq + 1
		} else {
			high = middle
		}
	}
	return low, nil
}

type Scanner interface{ Scan(dest ...any) error }

// Scan returns one row, and its fields as stored.
func Scan(s Scanner) (chain.Row, string, error) {
	var r chain.Row
	var ts, fields string
	err := s.Scan(&r.Seq, &r.ID, &ts, &r.Event, &r.SessionID, &r.Source, &r.Decision, &r.Reason,
		&r.ConnectorFQN, &r.ConnectorVersion, &r.Tool, &r.Operation, &r.Binding,
		&r.Method, &r.Scheme, &r.Host, &r.Port, &r.Path, &r.HTTPVersion, &r.Status,
		&r.RequestBytes, &r.ResponseBytes, &r.Redactions, &r.DurationUS, &fields, &r.PrevHash, &r.Hash)
	if err != nil {
		return r, "", err
	}
	if r.TS, err = time.Parse(chain.TimeFormat, ts); err != nil {
		return r, fields, fmt.Errorf("read audit row %d: its time is broken: %w", r.Seq, err)
	}
	if err := json.Unmarshal([]byte(fields), &r.Fields); err != nil {
		return r, fields, fmt.Errorf("read audit row %d: its fields are broken: %w", r.Seq, err)
	}
	return r, fields, nil
}
