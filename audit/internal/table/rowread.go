package table

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"

	"github.com/ALRubinger/aileron/audit/internal/chain"
)

// EachText calls f for the number and the text of TextColumn of every row, in order.
func EachText(ctx context.Context, conn *sql.Conn, f func(seq int64, text string) error) error {
	return eachText(ctx, conn, "ORDER BY seq", nil, f)
}

// eachText is EachText for the rows that the end of a query selects, which has numbers as its arguments. It calls the
// driver directly: scanning would copy each text once more.
func eachText(
	ctx context.Context, conn *sql.Conn, which string, args []any, f func(seq int64, text string) error,
) error {
	query := "SELECT seq, " + chain.TextColumn() + " FROM events " + which
	named := make([]driver.NamedValue, len(args))
	for i, v := range args {
		named[i] = driver.NamedValue{Ordinal: i + 1, Value: v}
	}
	return conn.Raw(func(c any) error {
		queryer, ok := c.(driver.QueryerContext)
		if !ok {
			return errors.New("the driver cannot query")
		}
		rows, err := queryer.QueryContext(ctx, query, named)
		if err != nil {
			return err
		}
		defer rows.Close()
		var values [2]driver.Value
		for {
			if err := rows.Next(values[:]); err == io.EOF {
				return nil
			} else if err != nil {
				return err
			}
			seq, ok := values[0].(int64)
			text, isText := values[1].(string)
			if !ok || !isText {
				return ErrDamaged
			}
			if err := f(seq, text); err != nil {
				return err
			}
		}
	})
}

// textRow is a row as EachText reads it.
type textRow struct {
	seq  int64
	text string
}

// maxAhead bounds the rows that columnReader reads at once.
const maxAhead = 256

// columnReader reads single rows column by column, in order: those whose text is ambiguous. If there are many, it reads
// some ahead with one statement.
type columnReader struct {
	query func(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	ahead map[int64]chain.FullRow
	size  int
}

// row returns the row with the number, which must be one that was read before. The error is not nil if rows cannot be
// read now; that this row cannot is in its own err.
func (c *columnReader) row(ctx context.Context, seq int64) (chain.FullRow, error) {
	if r, ok := c.ahead[seq]; ok {
		return r, nil
	}
	c.size = max(1, min(2*c.size, maxAhead))
	c.ahead = make(map[int64]chain.FullRow, c.size)
	rows, err := c.query(ctx, "SELECT "+Columns+" FROM events WHERE seq >= ? ORDER BY seq LIMIT ?", seq, c.size)
	if err == nil {
		for rows.Next() {
			var r chain.FullRow
			r.Row, r.Stored, r.Err = Scan(rows)
			c.ahead[r.Seq] = r
		}
		err = errors.Join(rows.Err(), rows.Close())
	}
	r, ok := c.ahead[seq]
	if !ok && (err == nil || IsDamage(err)) {
		return chain.FullRow{Row: chain.Row{Seq: seq}, Err: ErrDamaged}, nil
	}
	if !ok {
		return r, err
	}
	return r, nil
}

// Texts calls f for the number and the text of every row, in order, until f fails with failed; err is that of reading.
// full returns the same row, read column by column. A goroutine reads ahead, in parts of a bounded size.
func (d *Database) Texts(
	ctx context.Context, f func(seq int64, text string, full func() (chain.FullRow, error)) error,
) (failed, err error) {
	conn, err := d.SQL().Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	ctx, stop := context.WithCancel(ctx)
	parts, ended := make(chan []textRow, 4), make(chan error, 1)
	go func() {
		ended <- readParts(ctx, conn, parts)
		close(parts)
	}()
	defer func() {
		stop()
		for range parts { // until the goroutine has ended
		}
	}()
	byColumn := columnReader{query: d.SQL().QueryContext}
	for part := range parts {
		for _, t := range part {
			if err := f(t.seq, t.text, func() (chain.FullRow, error) { return byColumn.row(ctx, t.seq) }); err != nil {
				return err, nil
			}
		}
	}
	return nil, <-ended
}

// partSize is about how many bytes of rows are read at once.
const partSize = 256 << 10

// readParts sends all rows, in order.
func readParts(ctx context.Context, conn *sql.Conn, to chan<- []textRow) error {
	var part []textRow
	size := 0
	send := func() error {
		select {
		case to <- part:
		case <-ctx.Done():
			return ctx.Err()
		}
		part, size = make([]textRow, 0, len(part)), 0
		return nil
	}
	err := EachText(ctx, conn, func(seq int64, text string) error {
		part = append(part, textRow{seq, text})
		if size += len(text); size < partSize {
			return nil
		}
		return send()
	})
	if failed := send(); err == nil {
		err = failed
	}
	return err
}
