package audit

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"time"
)

// head identifies a row that was the newest of the log.
type head struct {
	seq  int64
	ts   time.Time
	hash string
}

// attest returns a *breach if the files of the database do not have the row that this process committed last.
// SQLite's page cache is dropped first, so that the files themselves are read.
func (t *batchWriter) attest() error {
	return t.conn.Raw(func(any) error {
		if err := run(t.shrink, nil); err != nil {
			return err
		}
		return t.holds()
	})
}

// forget drops what is known of the log.
func (t *batchWriter) forget() { t.head, t.headValid = head{}, false }

// holds returns a *breach if the log does not have the row of head.
func (t *batchWriter) holds() error {
	if t.head.seq == 0 {
		return nil
	}
	found, exists, err := t.hash(t.head.seq)
	return compare(t.head, found, exists, err)
}

// hash returns the hash of a row, and whether there is such a row.
func (t *batchWriter) hash(seq int64) (hash string, exists bool, err error) {
	args := []driver.NamedValue{{Ordinal: 1, Value: seq}}
	rows, err := t.hashOf.(driver.StmtQueryContext).QueryContext(context.Background(), args)
	if err != nil {
		return "", false, err
	}
	defer rows.Close()
	var v [1]driver.Value
	if err := rows.Next(v[:]); errors.Is(err, io.EOF) {
		return "", false, nil
	} else if err != nil {
		return "", false, err
	}
	hash, ok := v[0].(string)
	if !ok {
		return "", true, errDamaged
	}
	return hash, true, nil
}

// newest returns the newest row of the log, seq 0 if there is none.
func (t *batchWriter) newest() (head, error) {
	rows, err := t.last.(driver.StmtQueryContext).QueryContext(context.Background(), nil)
	if err != nil {
		return head{}, err
	}
	defer rows.Close()
	var v [3]driver.Value
	if err := rows.Next(v[:]); errors.Is(err, io.EOF) {
		return head{hash: zeroHash}, nil
	} else if err != nil {
		return head{}, err
	}
	seq, ok := v[0].(int64)
	ts, isText := v[1].(string)
	hash, isHash := v[2].(string)
	if !ok || !isText || !isHash {
		return head{}, fmt.Errorf("read the newest row: %w", errDamaged)
	}
	when, _ := time.Parse(timeFormat, ts) // it fails only for a row that was changed, which Verify finds
	return head{seq: seq, ts: when, hash: hash}, nil
}
