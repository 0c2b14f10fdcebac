package table

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/ALRubinger/aileron/audit/internal/chain"
)

// Find returns the rows whose ids begin with prefix, limit at most, oldest first. The error is [ErrNotFound] if there
// is none.
func (d *Database) Find(ctx context.Context, prefix string, limit int) ([]chain.Row, error) {
	prefix = strings.ToUpper(prefix)
	if chain.IsID(prefix) {
		row, err := d.Get(ctx, prefix)
		if err != nil {
			return nil, err
		}
		return []chain.Row{row}, nil
	}
	from, until, ok := PrefixTimes(prefix)
	if !ok {
		return nil, ErrNotFound
	}
	filter := Filter{idPrefix: prefix, Limit: limit, Since: from.Add(-idSlack), Until: until.Add(idSlack)}
	rows, err := d.list(ctx, filter)
	if err == nil && len(rows) == 0 { // a row that was added late has the time at which it happened
		filter.Since, filter.Until = time.Time{}, time.Time{}
		rows, err = d.list(ctx, filter)
	}
	if err == nil && len(rows) == 0 {
		err = ErrNotFound
	}
	return rows, err
}

// PrefixTimes returns the times of the first id that begins with prefix, and of the one after the last. It returns
// false if no id of [NewID] begins so.
func PrefixTimes(prefix string) (from, until time.Time, ok bool) {
	if prefix == "" || len(prefix) > ulid.EncodedSize {
		return from, until, false
	}
	pad := ulid.EncodedSize - len(prefix)
	first, err := ulid.ParseStrict(prefix + strings.Repeat("0", pad))
	if err != nil {
		return from, until, false
	}
	last, err := ulid.ParseStrict(prefix + strings.Repeat("Z", pad))
	if err != nil {
		return from, until, false
	}
	return ulid.Time(first.Time()), ulid.Time(min(last.Time(), maxIDTime)).Add(time.Millisecond), true
}

// maxIDTime bounds the times of PrefixTimes, in milliseconds: that of the year 2200.
const maxIDTime = 1000 * lastTime

// ErrNotFound is returned by Get if no row has the id.
var ErrNotFound = errors.New("there is no audit row with that id")

// Get returns the row with the id.
func (d *Database) Get(ctx context.Context, id string) (chain.Row, error) {
	made, ok := chain.IdTime(id)
	if !ok {
		return chain.Row{}, ErrNotFound
	}
	s, err := d.Snapshot(ctx)
	if err != nil {
		return chain.Row{}, err
	}
	defer s.Close()
	for span := range s.spansOfID(ctx, id, made) {
		const query = "SELECT " + Columns + " FROM events WHERE seq BETWEEN ? AND ? AND id = ? ORDER BY seq LIMIT 1"
		r, _, err := Scan(s.Conn.QueryRowContext(ctx, query, span.From, span.To, id))
		if !errors.Is(err, sql.ErrNoRows) {
			return r, err
		}
	}
	if s.err != nil {
		return chain.Row{}, s.err
	}
	return chain.Row{}, ErrNotFound
}

// EachRow calls f for every selected row, oldest first, and stops at the first error of f, which it returns.
func (d *Database) EachRow(ctx context.Context, filter Filter, f func(chain.Row) error) error {
	return d.each(ctx, filter, Columns, func(s Scanner) error {
		r, _, err := Scan(s)
		if err != nil {
			return err
		}
		return f(r)
	})
}

// EachSeq calls f for the number of every selected row, newest first.
func (d *Database) EachSeq(ctx context.Context, filter Filter, f func(seq int64) error) error {
	s, err := d.Snapshot(ctx)
	if err != nil {
		return err
	}
	defer func() {
		s.Close()
		d.indexMissing(ctx, s.missing)
	}()
	return s.rows(ctx, filter, "seq", true, func(row Scanner) error {
		var seq int64
		if err := row.Scan(&seq); err != nil {
			return fmt.Errorf("read the audit log: %w", err)
		}
		return f(seq)
	})
}

// list returns the selected rows, oldest first.
func (d *Database) list(ctx context.Context, filter Filter) (all []chain.Row, err error) {
	err = d.EachRow(ctx, filter, func(r chain.Row) error { all = append(all, r); return nil })
	return all, err
}

// SessionStart returns the row of session.started of a session. The error is [ErrNotFound] if the log has none. The
// search begins at the time in the session's id, and uses the index.
func (d *Database) SessionStart(ctx context.Context, session string) (chain.Row, error) {
	filter := Filter{Session: session, Event: chain.EventSessionStarted, Limit: 1}
	if made, ok := chain.IdTime(session); ok {
		from, err := d.seqAt(ctx, made.Add(-idSlack))
		if err != nil {
			return chain.Row{}, err
		}
		filter.AfterSeq = from - 1
	}
	row, err := d.firstRow(ctx, filter)
	if errors.Is(err, ErrNotFound) && filter.AfterSeq > 0 { // a clock ran backwards
		filter.AfterSeq = 0
		row, err = d.firstRow(ctx, filter)
	}
	return row, err
}

// firstRow returns the first row that the filter selects.
func (d *Database) firstRow(ctx context.Context, filter Filter) (row chain.Row, err error) {
	err = d.each(ctx, filter, Columns, func(s Scanner) (err error) {
		row, _, err = Scan(s)
		return err
	})
	if err == nil && row.Seq == 0 {
		err = ErrNotFound
	}
	return row, err
}

// FirstOf returns the number of a session's first row; 0 if there is none. The search begins at the time in the
// session's id.
func (d *Database) FirstOf(ctx context.Context, session string) (seq int64, err error) {
	var event chain.Event
	search := func(after int64) error {
		filter := Filter{Session: session, AfterSeq: after, Limit: 1}
		return d.each(ctx, filter, "seq, event", func(s Scanner) error { return s.Scan(&seq, &event) })
	}
	from := int64(1)
	if began, ok := chain.IdTime(session); ok {
		if from, err = d.seqAt(ctx, began.Add(-idSlack)); err != nil {
			return 0, err
		}
	}
	err = search(from - 1)
	if err == nil && from > 1 && event != chain.EventSessionStarted { // a clock was set meanwhile
		err = search(0)
	}
	return seq, err
}

// OpenOf returns the intents of a session without an outcome, from row from on.
func (d *Database) OpenOf(
	ctx context.Context, session string, from int64, most int,
) (o *chain.OpenIntents, ended bool, err error) {
	const what = "seq, event, COALESCE(CASE WHEN json_valid(fields) THEN " +
		"json_extract(fields, '$.request_id') END, '')"
	o = chain.NewOpenIntents(most)
	err = d.each(ctx, Filter{Session: session, AfterSeq: from - 1}, what, func(s Scanner) error {
		var seq int64
		var event chain.Event
		var request string
		if err := s.Scan(&seq, &event, &request); err != nil {
			return fmt.Errorf("read the audit log: %w", err)
		}
		ended = ended || event == chain.EventSessionEnded
		o.Add(seq, event, request)
		return nil
	})
	return o, ended, err
}
