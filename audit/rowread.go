package audit

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
)

// eachText calls f for the number and the text of rowTextColumn of every row in the span, in order. It calls the
// driver directly: scanning would copy each text once more.
func eachText(ctx context.Context, conn *sql.Conn, span seqSpan, f func(seq int64, text string) error) error {
	query := "SELECT seq, " + rowTextColumn() + " FROM events WHERE seq BETWEEN ? AND ? ORDER BY seq"
	return conn.Raw(func(c any) error {
		queryer, ok := c.(driver.QueryerContext)
		if !ok {
			return errors.New("the driver cannot query")
		}
		args := []driver.NamedValue{{Ordinal: 1, Value: span.from}, {Ordinal: 2, Value: span.to}}
		rows, err := queryer.QueryContext(ctx, query, args)
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
				return errDamaged
			}
			if err := f(seq, text); err != nil {
				return err
			}
		}
	})
}

// textRow is a row as eachText reads it.
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
	ahead map[int64]fullRow
	size  int
}

// fullRow is the result of scan.
type fullRow struct {
	Row
	fields string
	err    error
}

// row returns the row with the number, which must be one that was read before. The error is not nil if rows cannot be
// read now; that this row cannot is in its own err.
func (c *columnReader) row(ctx context.Context, seq int64) (fullRow, error) {
	if r, ok := c.ahead[seq]; ok {
		return r, nil
	}
	c.size = max(1, min(2*c.size, maxAhead))
	c.ahead = make(map[int64]fullRow, c.size)
	rows, err := c.query(ctx, "SELECT "+columns+" FROM events WHERE seq >= ? ORDER BY seq LIMIT ?", seq, c.size)
	if err == nil {
		for rows.Next() {
			var r fullRow
			r.Row, r.fields, r.err = scan(rows)
			c.ahead[r.Seq] = r
		}
		err = errors.Join(rows.Err(), rows.Close())
	}
	r, ok := c.ahead[seq]
	if !ok && (err == nil || isDamage(err)) {
		return fullRow{Row: Row{Seq: seq}, err: errDamaged}, nil
	}
	if !ok {
		return r, err
	}
	return r, nil
}
