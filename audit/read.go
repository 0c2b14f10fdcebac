package audit

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Filter selects rows. An empty field selects all.
type Filter struct {
	Session         string
	Sessions        []string // any of these; nil: all
	Event           Event
	Decision        Decision
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
	noIntents       bool
}

// terms returns the condition that selects the rows, and its arguments.
func (f Filter) terms() (string, []any) {
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
	if f.noIntents {
		add("event <> ?", string(EventProxyStarted))
	}
	if f.idPrefix != "" {
		add("id >= ?", f.idPrefix)
		add("id < ?", f.idPrefix+"\x7f")
	}
	if !f.Since.IsZero() {
		add("ts >= ?", f.Since.UTC().Format(timeFormat))
	}
	if !f.Until.IsZero() {
		add("ts < ?", f.Until.UTC().Format(timeFormat))
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

// Each calls f for every selected row, oldest first, and stops at the first error of f, which it returns.
func (l *Log) Each(ctx context.Context, filter Filter, f func(Row) error) error {
	l.flush(ctx)
	return l.each(ctx, filter, columns, func(s scanner) error {
		r, _, err := scan(s)
		if err != nil {
			return err
		}
		return f(r)
	})
}

// EachSeq calls f for the number of every selected row, newest first, and stops at the first error of f, which it
// returns. It costs a fraction of Each. With filter.Limit, the numbers are those of the newest rows.
func (l *Log) EachSeq(ctx context.Context, filter Filter, f func(seq int64) error) error {
	l.flush(ctx)
	s, err := l.snapshot(ctx)
	if err != nil {
		return err
	}
	defer func() {
		s.close()
		l.indexMissing(ctx, s.missing)
	}()
	return s.rows(ctx, filter, "seq", true, func(row scanner) error {
		var seq int64
		if err := row.Scan(&seq); err != nil {
			return fmt.Errorf("read the audit log: %w", err)
		}
		return f(seq)
	})
}

// List returns the selected rows, oldest first.
func (l *Log) List(ctx context.Context, filter Filter) ([]Row, error) {
	var all []Row
	err := l.Each(ctx, filter, func(r Row) error { all = append(all, r); return nil })
	return all, err
}

// ErrNotFound is returned by Get if no row has the id.
var ErrNotFound = errors.New("there is no audit row with that id")

// Get returns the row with the id.
func (l *Log) Get(ctx context.Context, id string) (Row, error) {
	l.flush(ctx)
	made, ok := idTime(id)
	if !ok {
		return Row{}, ErrNotFound
	}
	s, err := l.snapshot(ctx)
	if err != nil {
		return Row{}, err
	}
	defer s.close()
	for span := range s.spansOfID(ctx, id, made) {
		const query = "SELECT " + columns + " FROM events WHERE seq BETWEEN ? AND ? AND id = ? ORDER BY seq LIMIT 1"
		r, _, err := scan(s.conn.QueryRowContext(ctx, query, span.from, span.to, id))
		if !errors.Is(err, sql.ErrNoRows) {
			return r, err
		}
	}
	if s.err != nil {
		return Row{}, s.err
	}
	return Row{}, ErrNotFound
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
		if err := s.conn.QueryRowContext(ctx, next, middle).Scan(&seq, &ts); err != nil {
			return 0, fmt.Errorf("read the audit log: %w", err)
		}
		if ts < t.UTC().Format(timeFormat) {
			low = seq + 1
		} else {
			high = middle
		}
	}
	return low, nil
}

type scanner interface{ Scan(dest ...any) error }

// scan returns one row, and its fields as stored.
func scan(s scanner) (Row, string, error) {
	var r Row
	var ts, fields string
	err := s.Scan(&r.Seq, &r.ID, &ts, &r.Event, &r.SessionID, &r.Source, &r.Decision, &r.Reason,
		&r.ConnectorFQN, &r.ConnectorVersion, &r.Tool, &r.Operation, &r.Binding,
		&r.Method, &r.Scheme, &r.Host, &r.Port, &r.Path, &r.HTTPVersion, &r.Status,
		&r.RequestBytes, &r.ResponseBytes, &r.Redactions, &r.DurationUS, &fields, &r.PrevHash, &r.Hash)
	if err != nil {
		return r, "", err
	}
	if r.TS, err = time.Parse(timeFormat, ts); err != nil {
		return r, fields, fmt.Errorf("read audit row %d: its time is broken: %w", r.Seq, err)
	}
	if err := json.Unmarshal([]byte(fields), &r.Fields); err != nil {
		return r, fields, fmt.Errorf("read audit row %d: its fields are broken: %w", r.Seq, err)
	}
	return r, fields, nil
}
