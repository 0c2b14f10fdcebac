package table

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/ALRubinger/aileron/audit/internal/chain"
)

// EachStored calls f for each row behind after, limit at most, in order, until its first error, which it returns. f
// must not keep the row.
func (d *Database) EachStored(ctx context.Context, after int64, limit int, f func(*chain.RowText) error) error {
	conn, err := d.SQL().Conn(ctx)
	if err != nil {
		return fmt.Errorf("read the audit log: %w", err)
	}
	defer conn.Close()
	byColumn := columnReader{query: d.SQL().QueryContext}
	var failed error
	var r chain.RowText
	err = eachText(ctx, conn, "WHERE seq > ? ORDER BY seq LIMIT ?", []any{after, int64(limit)}, func(
		seq int64, text string,
	) error {
		if !r.Parse(seq, text) {
			full, err := byColumn.row(ctx, seq)
			if err = errors.Join(err, full.Err); err != nil {
				return fmt.Errorf("row %d: %w", seq, err)
			}
			r = chain.TextOf(&full)
		}
		failed = f(&r)
		return failed
	})
	if err != nil && failed == nil {
		return fmt.Errorf("read the audit log: %w", err)
	}
	return failed
}

// HashOf returns the hash of the row with the number, "" if there is none.
func (d *Database) HashOf(ctx context.Context, seq int64) (hash string, err error) {
	err = d.SQL().QueryRowContext(ctx, SelectHash, seq).Scan(&hash)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return hash, err
}
