package audit

import (
	"fmt"
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
	if err := t.conn.shrink(); err != nil {
		return err
	}
	return t.holds()
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
	if err := t.hashOf.bindNumber(0, seq); err != nil {
		return "", false, err
	}
	defer t.hashOf.reset()
	exists, err = t.hashOf.step()
	if !exists {
		return "", false, err
	}
	hash, ok := t.hashOf.string(0)
	if !ok {
		return "", true, errDamaged
	}
	return hash, true, nil
}

// newest returns the newest row of the log, seq 0 if there is none.
func (t *batchWriter) newest() (head, error) {
	defer t.last.reset()
	exists, err := t.last.step()
	if !exists {
		return head{hash: zeroHash}, err
	}
	seq, ok := t.last.number(0)
	ts, isText := t.last.string(1)
	hash, isHash := t.last.string(2)
	if !ok || !isText || !isHash {
		return head{}, fmt.Errorf("read the newest row: %w", errDamaged)
	}
	when, _ := time.Parse(timeFormat, ts) // it fails only for a row that was changed, which Verify finds
	return head{seq: seq, ts: when, hash: hash}, nil
}
