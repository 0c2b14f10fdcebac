package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ALRubinger/aileron/audit"
)

// Reader asks for the rows of one origin, or of all. It reads the database as it is when it is opened, and has the
// methods of [audit.Log] that read. Numbers of rows in a filter select nothing where there are several origins, unless
// it names a session: each origin has numbers of its own.
type Reader struct {
	d       *Database
	origin  string // "": all
	several bool
	cursors int
}

// OpenReader begins to read. origin may be empty; one that the database does not have is an error.
func OpenReader(ctx context.Context, d *Database, origin string) (*Reader, error) {
	r := &Reader{d: d, origin: origin}
	if err := d.check(ctx); err != nil {
		return nil, err
	}
	if err := d.exec(ctx, beginReading); err != nil {
		return nil, r.failed(err)
	}
	found, err := d.query(ctx, "SELECT origin FROM aileron.origins WHERE $1 IN ('', origin) LIMIT 2", origin)
	if err != nil {
		return nil, r.failed(err)
	}
	if r.several = len(found) > 1; len(found) == 0 && origin != "" {
		return nil, r.failed(fmt.Errorf("it has no origin %s", origin))
	}
	return r, nil
}

// Several reports whether rows of several origins are read.
func (r *Reader) Several() bool { return r.several }

// Close ends the connection.
func (r *Reader) Close() error {
	r.d.Close()
	return nil
}

func (r *Reader) failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("read %s: %w", r.d, err)
}

// terms is a condition, as it grows.
type terms struct {
	all  []string
	args []string
}

// add adds a condition with %s in place of its argument.
func (t *terms) add(condition, arg string) {
	t.args = append(t.args, arg)
	t.all = append(t.all, fmt.Sprintf(condition, "$"+strconv.Itoa(len(t.args))))
}

func (t *terms) String() string {
	if len(t.all) == 0 {
		return "true"
	}
	return strings.Join(t.all, " AND ")
}

// stamp returns a time as rows have it.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000000Z") }

// where returns the condition that selects the rows of a filter. With both, it leaves out what only the intent or only
// the outcome of a request has.
func (r *Reader) where(f audit.Filter, both bool) *terms {
	t := &terms{}
	for _, c := range []struct {
		column, value string
		one           bool
	}{
		{"origin", r.origin, false}, {"session_id", f.Session, false}, {"host", f.Host, false},
		{"connector_fqn", f.Connector, false}, {"operation", f.Operation, false}, {"event", string(f.Event), true},
		{"decision", string(f.Decision), true}, {"reason", f.Reason, true}, {"binding", f.Binding, true},
	} {
		if c.value != "" && !(c.one && both) {
			t.add(c.column+" = %s", c.value)
		}
	}
	if f.Sessions != nil {
		list, _ := json.Marshal(f.Sessions) // texts never fail
		t.add("session_id IN (SELECT json_array_elements_text(%s::json))", string(list))
	}
	if f.NoIntents && !both {
		t.add("event <> %s", string(audit.EventProxyStarted))
	}
	if !f.Since.IsZero() {
		t.add("ts >= %s", stamp(f.Since))
	}
	if !f.Until.IsZero() {
		t.add("ts < %s", stamp(f.Until))
	}
	if r.several && f.Session == "" {
		return t
	}
	if f.AfterSeq > 0 {
		t.add("seq > %s", strconv.FormatInt(f.AfterSeq, 10))
	}
	if f.ThroughSeq > 0 {
		t.add("seq <= %s", strconv.FormatInt(f.ThroughSeq, 10))
	}
	return t
}

// order returns the columns by which rows are ordered, with a direction behind each.
func (r *Reader) order(direction string) string {
	if r.several {
		return "ts" + direction + ", origin" + direction + ", seq" + direction
	}
	return "seq" + direction
}

// Each calls f for every selected row, oldest first, and stops at the first error of f, which it returns.
func (r *Reader) Each(ctx context.Context, filter audit.Filter, f func(audit.Row) error) error {
	where := r.where(filter, false)
	query := "SELECT " + columns + " FROM aileron.events WHERE " + where.String()
	switch {
	case filter.Limit > 0 && filter.Newest:
		query = "SELECT * FROM (" + query + " ORDER BY " + r.order(" DESC") + " LIMIT " + strconv.Itoa(filter.Limit) +
			") n ORDER BY " + r.order("")
	case filter.Limit > 0:
		query += " ORDER BY " + r.order("") + " LIMIT " + strconv.Itoa(filter.Limit)
	default:
		query += " ORDER BY " + r.order("")
	}
	return r.each(ctx, query, where.args, f)
}

// fetched is how many rows are read at once.
const fetched = 500

// each calls f for the rows of a query. What f asks for meanwhile is asked on the same connection.
func (r *Reader) each(ctx context.Context, query string, args []string, f func(audit.Row) error) error {
	r.cursors++
	cursor := fmt.Sprintf("c%d", r.cursors)
	if _, err := r.d.query(ctx, "DECLARE "+cursor+" NO SCROLL CURSOR FOR "+query, args...); err != nil {
		return r.failed(err)
	}
	defer func() { _ = r.d.exec(ctx, "CLOSE "+cursor) }()
	for {
		found, err := r.d.query(ctx, fmt.Sprintf("FETCH %d FROM %s", fetched, cursor))
		if err != nil {
			return r.failed(err)
		}
		for _, texts := range found {
			row, err := rowOf(texts)
			if err == nil {
				err = f(row)
			}
			if err != nil {
				return err
			}
		}
		if len(found) < fetched {
			return nil
		}
	}
}

// rowOf returns the row of the texts of columns.
func rowOf(t []string) (r audit.Row, err error) {
	n := func(i int) int64 { return number(t[i]) }
	r = audit.Row{Seq: n(1), ID: t[2], Event: audit.Event(t[3]), SessionID: t[4], Source: audit.Source(t[5]),
		Decision: audit.Decision(t[6]), Reason: t[7], ConnectorFQN: t[8], ConnectorVersion: t[9], Tool: t[10],
		Operation: t[11], Binding: t[12], Method: t[13], Scheme: t[14], Host: t[15], Port: int(n(16)), Path: t[17],
		HTTPVersion: t[18], Status: int(n(19)), RequestBytes: n(20), ResponseBytes: n(21), Redactions: int(n(22)),
		DurationUS: n(23), PrevHash: t[26], Hash: t[27]}
	if r.TS, err = time.Parse(time.RFC3339Nano, t[24]); err != nil {
		return r, fmt.Errorf("read row %d of origin %s: its time is broken: %w", r.Seq, t[0], err)
	}
	if err = json.Unmarshal([]byte(t[25]), &r.Fields); err != nil {
		return r, fmt.Errorf("read row %d of origin %s: its fields are broken: %w", r.Seq, t[0], err)
	}
	return r, nil
}

// List returns the selected rows, oldest first.
func (r *Reader) List(ctx context.Context, filter audit.Filter) (all []audit.Row, err error) {
	err = r.Each(ctx, filter, func(row audit.Row) error { all = append(all, row); return nil })
	return all, err
}

// Find returns the rows whose ids begin with prefix, limit at most, oldest first. The error is [audit.ErrNotFound] if
// there is none.
func (r *Reader) Find(ctx context.Context, prefix string, limit int) (all []audit.Row, err error) {
	where := r.where(audit.Filter{}, false)
	prefix = strings.ToUpper(prefix)
	where.add("id >= %s", prefix)
	where.add("id < %s", prefix+"\x7f")
	query := "SELECT " + columns + " FROM aileron.events WHERE " + where.String() + " ORDER BY " + r.order("") +
		" LIMIT " + strconv.Itoa(limit)
	err = r.each(ctx, query, where.args, func(row audit.Row) error { all = append(all, row); return nil })
	if err == nil && len(all) == 0 {
		err = audit.ErrNotFound
	}
	return all, err
}

// SessionStart returns the row of session.started of a session. The error is [audit.ErrNotFound] if there is none.
func (r *Reader) SessionStart(ctx context.Context, session string) (audit.Row, error) {
	all, err := r.List(ctx, audit.Filter{Session: session, Event: audit.EventSessionStarted, Limit: 1})
	switch {
	case err != nil:
		return audit.Row{}, err
	case len(all) == 0:
		return audit.Row{}, audit.ErrNotFound
	}
	return all[0], nil
}

// Groups counts the selected rows, in the order in which their columns first occur.
func (r *Reader) Groups(ctx context.Context, filter audit.Filter, by audit.GroupBy) ([]audit.Group, error) {
	filter.NoIntents = !by.Intents
	where := r.where(filter, false)
	host := "''"
	if by.Hosts {
		host = "host"
	}
	const counted = "coalesce(substring(fields FROM '\"requests\":([0-9]{1,15})[,}]')::bigint, 0)"
	query := "SELECT session_id, binding, connector_fqn, tool, operation, reason, event, decision, " + host +
		", count(*), count(*) + sum(CASE decision WHEN 'rejected' THEN greatest(" + counted + " - 1, 0) ELSE 0 END), " +
		"sum(CASE decision WHEN 'rejected' THEN " + counted + " ELSE 0 END), sum(redactions), min(ts), max(ts) " +
		"FROM aileron.events WHERE " + where.String() + " GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9 ORDER BY min(ts), min(seq)"
	found, err := r.d.query(ctx, query, where.args...)
	if err != nil {
		return nil, r.failed(err)
	}
	var groups []audit.Group
	for _, t := range found {
		g := audit.Group{Session: t[0], Binding: t[1], Connector: t[2], Tool: t[3], Operation: t[4], Reason: t[5],
			Event: audit.Event(t[6]), Decision: audit.Decision(t[7]), Host: t[8], Rows: number(t[9]), Requests: number(t[10]),
			Counted: number(t[11]), Redactions: number(t[12])}
		g.First, _ = time.Parse(time.RFC3339Nano, t[13]) // the database has checked its form
		g.Last, _ = time.Parse(time.RFC3339Nano, t[14])
		groups = append(groups, g)
	}
	return groups, nil
}

// maxLooked is how many rows are looked at for requests without an outcome, the newest, and maxOpen how many of these
// are returned.
const (
	maxLooked = 16 << 10
	maxOpen   = 4096
)

// Unfinished returns the intents that a filter selects and that no outcome of the selected rows stands for, of the
// newest 16384 rows.
func (r *Reader) Unfinished(ctx context.Context, filter audit.Filter) (u audit.Unfinished, err error) {
	if filter.Decision != "" || filter.Reason != "" || filter.Event != "" {
		return u, nil
	}
	most := maxOpen
	if filter.Limit > 0 {
		most = min(filter.Limit, most)
	}
	where := r.where(filter, true)
	const request = `substring(fields FROM '"request_id":"([0-9A-Za-z]+)"')`
	started := literal(string(audit.EventProxyStarted))
	recent := "WITH recent AS (SELECT *, " + request + " AS request FROM aileron.events WHERE " + where.String() +
		" ORDER BY " + r.order(" DESC") + " LIMIT " + strconv.Itoa(maxLooked) + "), " +
		"open AS (SELECT * FROM recent i WHERE event = " + started + " AND request IS NOT NULL AND NOT EXISTS (SELECT " +
		"FROM recent o WHERE o.session_id = i.session_id AND o.request = i.request AND o.event <> " + started + ")"
	if filter.Binding != "" {
		where.add("binding = %s", filter.Binding)
		recent += " AND " + where.all[len(where.all)-1]
	}
	query := recent + " ORDER BY " + r.order(" DESC") + " LIMIT " + strconv.Itoa(most+1) + ") SELECT " + columns + ", " +
		"EXISTS (SELECT FROM aileron.events e WHERE e.session_id = open.session_id AND e.event = 'session.ended'), " +
		"EXISTS (SELECT FROM aileron.events e WHERE e.session_id = open.session_id AND e.event <> " + started +
		" AND e.seq > open.seq AND " + strings.Replace(request, "fields", "e.fields", 1) + " = open.request) " +
		"FROM open ORDER BY " + r.order("")
	found, err := r.d.query(ctx, query, where.args...)
	if err != nil {
		return u, r.failed(err)
	}
	if len(found) > most {
		u.More, found = 1, found[1:]
	}
	for _, t := range found {
		row, err := rowOf(t)
		if err != nil {
			return u, err
		}
		one := audit.UnfinishedRow{Row: row}
		switch ended, later := t[len(t)-2] == "t", t[len(t)-1] == "t"; {
		case later:
			one.State = audit.IntentLater
		case ended:
			one.State = audit.IntentLost
		}
		u.Rows = append(u.Rows, one)
	}
	return u, nil
}

// Summarize counts the selected rows, and returns their groups, intents included.
func (r *Reader) Summarize(
	ctx context.Context, filter audit.Filter,
) (s audit.Summary, groups []audit.Group, err error) {
	if groups, err = r.Groups(ctx, filter, audit.GroupBy{Intents: true}); err != nil {
		return s, nil, err
	}
	s = audit.SummaryOf(groups)
	open, err := r.Unfinished(ctx, filter)
	for _, u := range open.Rows {
		if u.State == audit.IntentWaiting {
			s.Open++
		}
	}
	return s, groups, err
}

// Verify returns whether all origins that are read verify.
func (r *Reader) Verify(ctx context.Context) (report audit.Report, err error) {
	v, err := r.d.verify(ctx, r.origin, nil)
	if err != nil {
		return report, r.failed(err)
	}
	report.OK = v.OK
	for _, o := range v.Origins {
		report.Rows, report.Head = report.Rows+o.Rows, o.Head
		if !o.OK && report.Why == "" {
			report.Why = fmt.Sprintf("row %d of origin %s: %s", o.Findings[0].Seq, o.Origin, o.Findings[0].Why)
		}
	}
	if len(v.Origins) != 1 {
		report.Head = ""
	}
	return report, nil
}

// Follow calls show for the selected rows, and then for each new one, until ctx ends; then it returns nil.
func (r *Reader) Follow(ctx context.Context, filter audit.Filter, show func(audit.Row) error) error {
	at, err := r.ends(ctx)
	if err != nil {
		return err
	}
	if r.several && filter.AfterSeq > 0 {
		filter.AfterSeq = 0 // what is before it was shown
	} else if err := r.Each(ctx, filter, show); err != nil {
		return err
	}
	filter.Limit, filter.Newest, filter.NoIntents = 0, false, false
	if err := r.failed(r.d.exec(ctx, "COMMIT")); err != nil { // read what others commit
		return err
	}
	poll := time.NewTicker(followEvery)
	defer poll.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-poll.C:
		}
		err := r.news(ctx, filter, at, show)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// followEvery is how often Follow looks for new rows.
const followEvery = time.Second

// news shows the rows behind those that at has, and moves it.
func (r *Reader) news(
	ctx context.Context, filter audit.Filter, at map[string]int64, show func(audit.Row) error,
) error {
	if err := r.failed(r.d.exec(ctx, beginReading)); err != nil {
		return err
	}
	now, err := r.ends(ctx)
	if err != nil {
		return err
	}
	var rows []audit.Row
	for origin, newest := range now {
		if newest == at[origin] {
			continue
		}
		one := Reader{d: r.d, origin: origin}
		filter.AfterSeq = at[origin]
		more, err := one.List(ctx, filter)
		if err != nil {
			return err
		}
		rows, at[origin] = append(rows, more...), newest
	}
	if err := r.failed(r.d.exec(ctx, "COMMIT")); err != nil {
		return err
	}
	slices.SortStableFunc(rows, func(a, b audit.Row) int { return a.TS.Compare(b.TS) })
	for _, row := range rows {
		if err := show(row); err != nil {
			return err
		}
	}
	return nil
}

// ends returns the number of the newest row of each origin.
func (r *Reader) ends(ctx context.Context) (map[string]int64, error) {
	const query = "SELECT o.origin, coalesce((SELECT seq FROM aileron.events e WHERE e.origin = o.origin " +
		"ORDER BY seq DESC LIMIT 1), 0) FROM aileron.origins o WHERE $1 IN ('', o.origin)"
	found, err := r.d.query(ctx, query, r.origin)
	at := map[string]int64{}
	for _, t := range found {
		at[t[0]] = number(t[1])
	}
	return at, r.failed(err)
}
