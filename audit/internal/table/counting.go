package table

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unsafe"

	sqlite3 "modernc.org/sqlite/lib"
)

// TableSnapshot is a snapshot that is read through the C interface of the driver, on a connection of its own.
// database/sql and the driver behind it allocate and copy for each row, which costs more than to count it.
type Counting struct {
	snapshot
	table *Connection
	next  *Statement // returns the first number from one on
	sums  []sum      // of the block that was read last
}

const selectNext = `SELECT seq FROM events WHERE seq >= ? ORDER BY seq LIMIT 1`

// smallCache bounds the pages that are cached. Each is read once, but for inner ones of the table: more pages, which
// the driver allocates and releases one by one, cost a tenth of the time of a summary.
const smallCache = "PRAGMA cache_size = 48"

// readWait is how long a reader waits for a lock.
const readWait = 2 * time.Second

// TableSnapshot begins to read the log.
func (d *Database) TableSnapshot() (*Counting, error) {
	readOnly, err := immutable(d.path)
	if err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	c, err := openReadOnly(Dsn(d.path) + "?mode=ro" + readOnly)
	if err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	s := &Counting{table: c}
	s.db = d
	if err := s.begin(); err != nil {
		s.Close()
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	return s, nil
}

func (s *Counting) begin() error {
	if err := s.table.wait(readWait); err != nil {
		return err
	}
	if err := s.table.Exec(smallCache); err != nil {
		return err
	}
	if err := s.table.Exec("BEGIN"); err != nil {
		return err
	}
	last, err := s.table.Prepare("SELECT COALESCE(MAX(seq), 0) FROM events")
	if err != nil {
		return err
	}
	if s.newest, _, err = last.one(); err != nil {
		return err
	}
	if s.next, err = s.table.Prepare(selectNext); err != nil {
		return err
	}
	s.first, _, _ = s.from(0) // if it cannot be read, the newest rows may be readable all the same
	if s.complete() == 0 {
		return nil
	}
	hashOf, err := s.table.Prepare(SelectHash)
	if err != nil {
		return err
	}
	s.hash = hashOf.hashOf
	s.index = openIndex(s.db.path)
	s.block = NewIndexBlock(0)
	return nil
}

// hashOf returns the hash of a row, for a statement of SelectHash.
func (s *Statement) hashOf(seq int64) (hash string, err error) {
	if err := s.BindNumber(0, seq); err != nil {
		return "", err
	}
	defer s.Reset()
	if _, err = s.Step(); err == nil {
		hash, _ = s.String(0) // "" without such a row
	}
	return hash, err
}

// one executes a statement whose result is one number at most.
func (s *Statement) one() (v int64, exists bool, err error) {
	defer s.Reset()
	if exists, err = s.Step(); exists {
		v, _ = s.Number(0)
	}
	return v, exists, err
}

// from returns the first number of a row that is not less than seq.
func (s *Counting) from(seq int64) (first int64, exists bool, err error) {
	if err := s.next.BindNumber(0, seq); err != nil {
		return 0, false, err
	}
	return s.next.one()
}

// Close ends the snapshot, and its transaction.
func (s *Counting) Close() {
	s.index.Close()
	s.table.Close()
}

// MaxStretch is the number of rows after which a reader looks whether it is to stop.
const MaxStretch = 2048

// Each calls f for the selected columns of every selected row, oldest first, until the first error, which it returns.
// Their texts are valid until f returns.
func (s *Counting) Each(ctx context.Context, filter Filter, what string, f func(*Statement) error) error {
	one := filter
	one.AfterSeq, one.ThroughSeq = 0, 0 // spans has them
	terms, args := one.Terms()
	query := "SELECT " + what + " FROM events WHERE seq BETWEEN ? AND ? AND " + terms + " ORDER BY seq"
	rows, err := s.table.Prepare(query)
	if err == nil {
		err = rows.bind(2, args)
	}
	if err != nil {
		return fmt.Errorf("read the audit log: %w", err)
	}
	for span := range s.spans(ctx, filter, false) {
		for exists := true; exists && span.From <= span.To; {
			if exists, err = s.stretch(ctx, rows, &span, f); err != nil {
				return err
			}
		}
	}
	return s.err
}

// stretch calls f for the first rows of the span, which it removes from it, and reports whether to continue. A span of
// many numbers need not have many rows.
func (s *Counting) stretch(
	ctx context.Context, rows *Statement, span *SeqSpan, f func(*Statement) error,
) (exists bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, fmt.Errorf("read the audit log: %w", err)
	}
	to := span.To
	if to-span.From >= MaxStretch {
		if span.From, exists, err = s.from(span.From); err != nil {
			return false, fmt.Errorf("read the audit log: %w", err)
		}
		if !exists || span.From > to {
			return false, nil
		}
		if to-span.From >= MaxStretch {
			to = span.From + MaxStretch - 1
		}
	}
	err = errors.Join(rows.BindNumber(0, span.From), rows.BindNumber(1, to))
	defer rows.Reset()
	for err == nil {
		more, failed := rows.Step()
		if err = failed; err != nil || !more {
			break
		}
		if err := f(rows); err != nil {
			return false, err
		}
	}
	if err != nil {
		return false, fmt.Errorf("read the audit log: %w", err)
	}
	exists = to < span.To
	span.From = to + 1
	return exists, nil
}

// bind binds the parameters from i on to texts and numbers.
func (s *Statement) bind(i int, args []any) (err error) {
	for _, arg := range args {
		switch v := arg.(type) {
		case int64:
			err = s.BindNumber(i, v)
		case string:
			err = s.BindText(i, v)
		}
		if err != nil {
			return err
		}
		i++
	}
	return nil
}

// text returns a column of the row, from 0, which is valid until the next step: what is kept of it has to be cloned.
func (s *Statement) text(i int32) string {
	text := sqlite3.Xsqlite3_column_text(s.Tls, s.handle, i)
	n := sqlite3.Xsqlite3_column_bytes(s.Tls, s.handle, i)
	if text == 0 || n <= 0 {
		return ""
	}
	return unsafe.String((*byte)(at(text)), int(n)) //nolint:gosec // SQLite has it until then
}
