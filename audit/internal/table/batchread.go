package table

import (
	"fmt"
	"time"

	"github.com/ALRubinger/aileron/audit/internal/chain"
)

// Attest returns a *breach if the files of the database do not have the row that this process committed last.
// SQLite's page cache is dropped first, so that the files themselves are read.
func (t *Writer) Attest() error {
	if err := t.Conn.shrink(); err != nil {
		return err
	}
	return t.holds()
}

// Forget drops what is known of the log.
func (t *Writer) Forget() { t.Head, t.headValid = chain.Head{}, false }

// holds returns a *breach if the log does not have the row of head.
func (t *Writer) holds() error {
	if t.Head.Seq == 0 {
		return nil
	}
	found, exists, err := t.hash(t.Head.Seq)
	return compare(t.Head, found, exists, err)
}

// hash returns the hash of a row, and whether there is such a row.
func (t *Writer) hash(seq int64) (hash string, exists bool, err error) {
	if err := t.hashOf.BindNumber(0, seq); err != nil {
		return "", false, err
	}
	defer t.hashOf.Reset()
	exists, err = t.hashOf.Step()
	if !exists {
		return "", false, err
	}
	hash, ok := t.hashOf.String(0)
	if !ok {
		return "", true, ErrDamaged
	}
	return hash, true, nil
}

// Newest returns the newest row of the log, seq 0 if there is none.
func (t *Writer) Newest() (chain.Head, error) {
	defer t.last.Reset()
	exists, err := t.last.Step()
	if !exists {
		return chain.Head{Hash: chain.ZeroHash}, err
	}
	seq, ok := t.last.Number(0)
	ts, isText := t.last.String(1)
	hash, isHash := t.last.String(2)
	if !ok || !isText || !isHash {
		return chain.Head{}, fmt.Errorf("read the newest row: %w", ErrDamaged)
	}
	when, _ := time.Parse(chain.TimeFormat, ts) // it fails only for a row that was changed, which Verify finds
	return chain.Head{Seq: seq, Ts: when, Hash: hash}, nil
}
