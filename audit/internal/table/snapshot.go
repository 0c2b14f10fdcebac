package table

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"math"
	"time"
)

// snapshot is the log as it is at one moment.
type snapshot struct {
	db      *Database
	Conn    *sql.Conn
	newest  int64                           // the number of the newest row; 0 if there is none
	first   int64                           // that of the first one: those before it were pruned
	index   *indexFile                      // nil: there is none
	hashOf  driver.Stmt                     // SelectHash; called directly, because a look at each block needs it
	hash    func(seq int64) (string, error) // of a row
	block   *indexBlock
	missing []int64 // blocks without a record that were read
	err     error   // why an iterator ended early
}

// Snapshot begins to read the log.
func (d *Database) Snapshot(ctx context.Context) (*snapshot, error) {
	conn, err := d.SQL().Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	s := &snapshot{db: d, Conn: conn}
	if err = s.begin(ctx); err != nil {
		s.Close()
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	return s, nil
}

func (s *snapshot) begin(ctx context.Context) (err error) {
	if _, err := s.Conn.ExecContext(ctx, "BEGIN"); err != nil {
		return err
	}
	if err := s.Conn.QueryRowContext(ctx, "SELECT COALESCE(MAX(seq), 0) FROM events").Scan(&s.newest); err != nil {
		return err
	}
	// If it cannot be read, the newest rows may be readable all the same.
	_ = s.Conn.QueryRowContext(ctx, "SELECT COALESCE(MIN(seq), 1) FROM events").Scan(&s.first)
	if s.complete() == 0 {
		return nil
	}
	err = s.Conn.Raw(func(c any) (err error) {
		s.hashOf, err = c.(driver.ConnPrepareContext).PrepareContext(ctx, SelectHash)
		return err
	})
	if err != nil {
		return err
	}
	s.hash = s.driverHash
	s.index = openIndex(s.db.path)
	s.block = NewIndexBlock(0)
	return nil
}

// complete returns the number of blocks of which the log has the last row.
func (s *snapshot) complete() int64 { return s.newest / BlockRows }

// firstBlock returns the first block of which the log has a row.
func (s *snapshot) firstBlock() int64 { return (max(s.first, 1) - 1) / BlockRows }

func (s *snapshot) Close() {
	if s.hashOf != nil {
		_ = s.Conn.Raw(func(any) error { return s.hashOf.Close() })
	}
	s.index.Close()
	_, _ = s.Conn.ExecContext(context.Background(), "ROLLBACK")
	_ = s.Conn.Close()
}

// driverHash returns the hash of a row.
func (s *snapshot) driverHash(seq int64) (hash string, err error) {
	err = s.Conn.Raw(func(any) error {
		args := []driver.NamedValue{{Ordinal: 1, Value: seq}}
		rows, err := s.hashOf.(driver.StmtQueryContext).QueryContext(context.Background(), args)
		if err != nil {
			return err
		}
		defer rows.Close()
		var v [1]driver.Value
		if err := rows.Next(v[:]); err != nil {
			return err
		}
		hash, _ = v[0].(string)
		return nil
	})
	return hash, err
}

// each calls f for the selected columns of every selected row, oldest first, until the first error, which it returns.
func (d *Database) each(ctx context.Context, filter Filter, what string, f func(Scanner) error) error {
	s, err := d.Snapshot(ctx)
	if err != nil {
		return err
	}
	defer func() {
		s.Close()
		d.indexMissing(ctx, s.missing)
	}()
	if filter.Limit > 0 && filter.Newest {
		var oldest int64
		seq := func(row Scanner) error { return row.Scan(&oldest) }
		if err := s.rows(ctx, filter, "seq", true, seq); err != nil {
			return err
		}
		if oldest == 0 {
			return nil
		}
		s.missing = nil // they are read again
		filter.Limit, filter.AfterSeq = 0, oldest-1
	}
	return s.rows(ctx, filter, what, false, f)
}

// rows calls f for the selected rows in the given order, filter.Limit at most.
func (s *snapshot) rows(
	ctx context.Context, filter Filter, what string, descending bool, f func(Scanner) error,
) error {
	terms, args := filter.Terms()
	//nolint:gosec // what and terms are constants of ours; values are arguments
	query := "SELECT " + what + " FROM events WHERE seq BETWEEN ? AND ? AND " + terms + " ORDER BY seq"
	if descending {
		query += " DESC"
	}
	stmt, err := s.Conn.PrepareContext(ctx, query)
	if err != nil {
		return fmt.Errorf("read the audit log: %w", err)
	}
	defer stmt.Close()
	left := cmp.Or(filter.Limit, math.MaxInt)
	for span := range s.spans(ctx, filter, descending) {
		read, err := readSpan(ctx, stmt, append([]any{span.From, span.To}, args...), left, f)
		if err != nil {
			return err
		}
		if left -= read; left == 0 {
			return nil
		}
	}
	return s.err
}

// readSpan calls f for the rows of one statement, limit at most, and returns their number.
func readSpan(ctx context.Context, stmt *sql.Stmt, args []any, limit int, f func(Scanner) error) (n int, err error) {
	rows, err := stmt.QueryContext(ctx, args...)
	if err != nil {
		return 0, fmt.Errorf("read the audit log: %w", err)
	}
	defer rows.Close()
	for n < limit && rows.Next() {
		if err := f(rows); err != nil {
			return n, err
		}
		n++
	}
	if err := rows.Err(); err != nil {
		return n, fmt.Errorf("read the audit log: %w", err)
	}
	return n, nil
}

// seqAt returns the number of the first row at or after t, or a guess if clocks ran backwards.
func (d *Database) seqAt(ctx context.Context, t time.Time) (int64, error) {
	s, err := d.Snapshot(ctx)
	if err != nil {
		return 0, err
	}
	defer s.Close()
	return s.seqAt(ctx, t)
}
