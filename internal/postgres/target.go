package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/ship"
)

// Target sends rows to a database.
type Target struct {
	*Database
	checked bool   // the schema, on this connection
	worked  bool   // rows were sent, or could have been: a refusal may pass by itself
	copied  []byte // a buffer
}

// NewTarget returns the target that sends rows to d.
func NewTarget(d *Database) *Target { return &Target{Database: d} }

var _ ship.Target = (*Target)(nil)

// Close implements [ship.Target].
func (t *Target) Close() {
	t.checked = false
	t.Database.Close()
}

// Head implements [ship.Target]. It registers the origin if the database does not know it.
func (t *Target) Head(ctx context.Context, o ship.Origin) (head audit.Head, err error) {
	ctx, cancel := context.WithTimeout(ctx, batchTimeout)
	defer cancel()
	if t.conn == nil || t.conn.IsClosed() {
		t.checked = false
	}
	if !t.checked {
		if err := t.check(ctx); err != nil {
			return head, t.refusal(err, "read")
		}
		if err := t.register(ctx, o); err != nil {
			return head, t.refusal(err, "register the log at")
		}
		t.checked = true
	}
	found, err := t.query(ctx, "SELECT seq, hash FROM aileron.events WHERE origin = $1 ORDER BY seq DESC LIMIT 1", o.ID)
	if err != nil {
		return head, t.refusal(err, "read")
	}
	t.worked = true
	return headOf(found)
}

// headOf returns the head of a row of numbers and hashes, if there is one.
func headOf(found rows) (head audit.Head, err error) {
	if len(found) == 0 {
		return head, nil
	}
	head.Hash = found[0][1]
	head.Seq, err = strconv.ParseInt(found[0][0], 10, 64)
	return head, err
}

// register adds the origin, and returns an error if it is that of another key.
func (t *Target) register(ctx context.Context, o ship.Origin) error {
	const add = "INSERT INTO aileron.origins (origin, key) VALUES ($1, $2) ON CONFLICT DO NOTHING"
	const ask = "SELECT key, role = session_user, role FROM aileron.origins WHERE origin = $1"
	found, err := t.query(ctx, ask, o.ID)
	if err == nil && len(found) == 0 {
		if _, err = t.query(ctx, add, o.ID, o.Key); err == nil {
			found, err = t.query(ctx, ask, o.ID)
		}
	}
	switch {
	case err != nil:
		return err
	case len(found) == 0:
		return errNoRow
	case found[0][0] != o.Key:
		return ship.Refusef("%s has the origin %s with another key: a log that is not this one was shipped under its name",
			t, o.ID)
	case found[0][1] != "t":
		err := fmt.Errorf("%s has the origin %s as one of the role %s", t, o.ID, found[0][2])
		return &ship.RefusedError{Err: hint.New(err, "ship it as that role")}
	}
	return nil
}

// The temporary table has the columns of events, in the order in which rows are written.
const (
	temporary = "aileron_rows_1"
	columns   = "origin, seq, id, event, session_id, source, decision, reason, connector_fqn, connector_version, tool, " +
		"operation, binding, method, scheme, host, port, path, http_version, status, request_bytes, response_bytes, " +
		"redactions, duration_us, ts, fields, prev_hash, hash"
)

// begin begins the transaction of a batch. The lock is for other shippers of the origin; what waits for it, or for a
// slow disk, is bounded. The temporary table is created in each transaction, because a pool may give each another
// connection.
func begin(origin string) string {
	return "BEGIN; " + ownNames + "; SET LOCAL lock_timeout = '10s'; SET LOCAL statement_timeout = '60s'; " +
		"SET LOCAL client_min_messages = warning; " +
		"SELECT pg_advisory_xact_lock(" + lockOf(origin) + "); " +
		"CREATE TEMPORARY TABLE IF NOT EXISTS " + temporary + " (" + definitions() + ") ON COMMIT DELETE ROWS"
}

// definitions returns the columns of the temporary table.
func definitions() string {
	var all []string
	for name := range strings.SplitSeq(columns, ", ") {
		kind := " text"
		switch name {
		case "seq", "port", "status", "request_bytes", "response_bytes", "redactions", "duration_us":
			kind = " bigint"
		}
		all = append(all, name+kind)
	}
	return strings.Join(all, ", ")
}

// Send implements [ship.Target].
func (t *Target) Send(ctx context.Context, b *ship.Batch) error {
	ctx, cancel := context.WithTimeout(ctx, batchTimeout)
	defer cancel()
	err := t.send(ctx, b)
	if err == nil {
		return nil
	}
	if t.conn != nil && t.conn.TxStatus() != 'I' {
		t.Close() // which rolls back
	}
	if errors.Is(err, ship.ErrMoved) {
		return err
	}
	return t.refusal(err, fmt.Sprintf("add rows %d to %d to", b.After.Seq+1, b.Head().Seq))
}

func (t *Target) send(ctx context.Context, b *ship.Batch) error {
	if err := t.exec(ctx, begin(b.Origin.ID)); err != nil {
		return err
	}
	const newest = "SELECT seq, hash FROM aileron.events WHERE origin = $1 ORDER BY seq DESC LIMIT 1"
	found, err := t.query(ctx, newest, b.Origin.ID)
	if err != nil {
		return err
	}
	if is, err := headOf(found); err != nil || is != b.After {
		return errors.Join(err, ship.ErrMoved, t.exec(ctx, "ROLLBACK"))
	}
	if err := t.gap(ctx, b); err != nil {
		return err
	}
	t.copied = t.copied[:0]
	for i := range b.Rows {
		t.copied = appendCopy(t.copied, b.Origin.ID, &b.Rows[i])
	}
	if _, err := t.conn.CopyFrom(ctx, bytes.NewReader(t.copied), "COPY pg_temp."+temporary+" FROM STDIN"); err != nil {
		return err
	}
	head := b.Head()
	const addRows = "INSERT INTO aileron.events (" + columns + ") SELECT " + columns + " FROM pg_temp." + temporary +
		" ON CONFLICT DO NOTHING"
	if err := t.exec(ctx, addRows); err != nil {
		return err
	}
	const addHead = "INSERT INTO aileron.heads (origin, seq, hash, note) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING"
	if _, err := t.query(ctx, addHead, b.Origin.ID, strconv.FormatInt(head.Seq, 10), head.Hash, b.Note); err != nil {
		return err
	}
	return t.exec(ctx, "COMMIT")
}

// gap states the rows that the log does not have.
func (t *Target) gap(ctx context.Context, b *ship.Batch) error {
	if b.Gap == nil {
		return nil
	}
	const add = "INSERT INTO aileron.gaps (origin, first_seq, last_seq, hash, reason) VALUES ($1, $2, $3, $4, $5) " +
		"ON CONFLICT DO NOTHING"
	_, err := t.query(ctx, add, b.Origin.ID, strconv.FormatInt(b.Gap.First, 10), strconv.FormatInt(b.Gap.Last, 10),
		b.Gap.Hash, b.Gap.Reason)
	return err
}

// appendCopy appends a row in the text format of COPY, in the order of columns.
func appendCopy(out []byte, origin string, r *audit.StoredRow) []byte {
	out = append(append(out, origin...), '\t')
	out = strconv.AppendInt(out, r.Seq, 10)
	for _, v := range r.Values {
		out = appendCopyText(append(out, '\t'), v)
	}
	out = appendCopyText(append(out, '\t'), r.Fields)
	out = appendCopyText(append(out, '\t'), r.Prev)
	return append(appendCopyText(append(out, '\t'), r.Hash), '\n')
}

// appendCopyText appends a column in the text format of COPY.
func appendCopyText(out []byte, v string) []byte {
	from := 0
	for i := range len(v) {
		escaped := ""
		switch v[i] {
		case '\\':
			escaped = `\\`
		case '\t':
			escaped = `\t`
		case '\n':
			escaped = `\n`
		case '\r':
			escaped = `\r`
		default:
			continue
		}
		out, from = append(append(out, v[from:i]...), escaped...), i+1
	}
	return append(out, v[from:]...)
}

// refusal returns a final error for one that trying again cannot help. One of the connection, the credentials or the
// rights is final only until rows could be sent: what worked may work again.
func (t *Target) refusal(err error, what string) error {
	if errors.As(err, new(*ship.RefusedError)) {
		return err
	}
	code := codeOf(err)
	named := fmt.Errorf("%s %s: %w", what, t, err)
	class := code[:min(2, len(code))]
	switch {
	case constraintOf(err) == "events_hash":
		err = hint.New(named, "a row does not have its hash: aileron audit verify")
	case constraintOf(err) == "events_chain":
		err = hint.New(named, "the log is not the one whose rows were shipped before: aileron audit verify")
	case class == "22" || class == "23":
		err = named
	case t.worked || class != "28" && class != "3D" && class != "3F" && class != "42":
		return named
	case code == insufficientPrivilege:
		err = hint.New(named, "docs/audit-shipping.md has the grants that the role needs")
	default:
		err = named
	}
	return &ship.RefusedError{Err: err}
}
