package audit

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unsafe"

	sqlite3 "modernc.org/sqlite/lib"
)

// tableSnapshot is a snapshot that is read through the C interface of the driver, on a connection of its own.
// database/sql and the driver behind it allocate and copy for each row, which costs more than to count it.
type tableSnapshot struct {
	snapshot
	table *connection
	next  *statement // returns the first number from one on
}

const selectNext = `SELECT seq FROM events WHERE seq >= ? ORDER BY seq LIMIT 1`

// readWait is how long a reader waits for a lock.
const readWait = 2 * time.Second

// tableSnapshot begins to read the log.
func (l *Log) tableSnapshot() (*tableSnapshot, error) {
	readOnly, err := immutable(l.path)
	if err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	c, err := openReadOnly(dsn(l.path) + "?mode=ro" + readOnly)
	if err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	s := &tableSnapshot{table: c}
	s.log = l
	if err := s.begin(); err != nil {
		s.close()
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	return s, nil
}

func (s *tableSnapshot) begin() error {
	if err := s.table.wait(readWait); err != nil {
		return err
	}
	if err := s.table.exec("BEGIN"); err != nil {
		return err
	}
	last, err := s.table.prepare("SELECT COALESCE(MAX(seq), 0) FROM events")
	if err != nil {
		return err
	}
	if s.newest, _, err = last.one(); err != nil {
		return err
	}
	if s.next, err = s.table.prepare(selectNext); err != nil {
		return err
	}
	s.first, _, _ = s.from(0) // if it cannot be read, the newest rows may be readable all the same
	if s.complete() == 0 {
		return nil
	}
	hashOf, err := s.table.prepare(selectHash)
	if err != nil {
		return err
	}
	s.hash = hashOf.hashOf
	s.index, _ = openIndex(s.log.path) // without one, all rows are read
	s.block = newIndexBlock(0)
	return nil
}

// hashOf returns the hash of a row, for a statement of selectHash.
func (s *statement) hashOf(seq int64) (hash string, err error) {
	if err := s.bindNumber(0, seq); err != nil {
		return "", err
	}
	defer s.reset()
	if _, err = s.step(); err == nil {
		hash, _ = s.string(0) // "" without such a row
	}
	return hash, err
}

// one executes a statement whose result is one number at most.
func (s *statement) one() (v int64, exists bool, err error) {
	defer s.reset()
	if exists, err = s.step(); exists {
		v, _ = s.number(0)
	}
	return v, exists, err
}

// from returns the first number of a row that is not less than seq.
func (s *tableSnapshot) from(seq int64) (first int64, exists bool, err error) {
	if err := s.next.bindNumber(0, seq); err != nil {
		return 0, false, err
	}
	return s.next.one()
}

// close ends the snapshot, and its transaction.
func (s *tableSnapshot) close() {
	s.index.close()
	s.table.close()
}

// maxStretch is the number of rows after which a reader looks whether it is to stop.
const maxStretch = 2048

// each calls f for the selected columns of every selected row, oldest first, until the first error, which it returns.
// Their texts are valid until f returns.
func (s *tableSnapshot) each(ctx context.Context, filter Filter, what string, f func(*statement) error) error {
	one := filter
	one.AfterSeq, one.ThroughSeq = 0, 0 // spans has them
	terms, args := one.terms()
	query := "SELECT " + what + " FROM events WHERE seq BETWEEN ? AND ? AND " + terms + " ORDER BY seq"
	rows, err := s.table.prepare(query)
	if err == nil {
		err = rows.bind(2, args)
	}
	if err != nil {
		return fmt.Errorf("read the audit log: %w", err)
	}
	for span := range s.spans(ctx, filter, false) {
		for exists := true; exists && span.from <= span.to; {
			if exists, err = s.stretch(ctx, rows, &span, f); err != nil {
				return err
			}
		}
	}
	return s.err
}

// stretch calls f for the first rows of the span, which it removes from it, and reports whether to continue. A span of
// many numbers need not have many rows.
func (s *tableSnapshot) stretch(
	ctx context.Context, rows *statement, span *seqSpan, f func(*statement) error,
) (exists bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, fmt.Errorf("read the audit log: %w", err)
	}
	to := span.to
	if to-span.from >= maxStretch {
		if span.from, exists, err = s.from(span.from); err != nil {
			return false, fmt.Errorf("read the audit log: %w", err)
		}
		if !exists || span.from > to {
			return false, nil
		}
		if to-span.from >= maxStretch {
			to = span.from + maxStretch - 1
		}
	}
	err = errors.Join(rows.bindNumber(0, span.from), rows.bindNumber(1, to))
	defer rows.reset()
	for err == nil {
		more, failed := rows.step()
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
	exists = to < span.to
	span.from = to + 1
	return exists, nil
}

// bind binds the parameters from i on to texts and numbers.
func (s *statement) bind(i int, args []any) (err error) {
	for _, arg := range args {
		switch v := arg.(type) {
		case int64:
			err = s.bindNumber(i, v)
		case string:
			err = s.bindText(i, v)
		}
		if err != nil {
			return err
		}
		i++
	}
	return nil
}

// text returns a column of the row, from 0, which is valid until the next step: what is kept of it has to be cloned.
func (s *statement) text(i int32) string {
	text := sqlite3.Xsqlite3_column_text(s.tls, s.handle, i)
	n := sqlite3.Xsqlite3_column_bytes(s.tls, s.handle, i)
	if text == 0 || n <= 0 {
		return ""
	}
	return unsafe.String((*byte)(at(text)), int(n)) //nolint:gosec // SQLite has it until then
}
