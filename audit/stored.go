package audit

import (
	"context"
	"fmt"
	"strings"

	"github.com/ALRubinger/aileron/audit/internal/chain"
	"github.com/ALRubinger/aileron/audit/internal/table"
)

// StoredRow is a row with every column as the text that its hash is made of: Values in the order of [StoredColumns],
// and Fields as JSON.
type StoredRow = chain.RowText

// StoredColumns returns the names of the columns of StoredRow.Values.
func StoredColumns() []string { return chain.CanonicalNames() }

// Head identifies a row by its number and its hash; number 0 is before the first row.
type Head struct {
	Seq  int64
	Hash string
}

// ErrAnotherKey is returned for a signed head that is signed by none of the keys.
var ErrAnotherKey = chain.ErrAnotherKey

// EachStored calls f for each row behind the one with the number after, limit at most, oldest first, until the first
// error of f, which it returns. It costs a fraction of Each.
func (l *Log) EachStored(ctx context.Context, after int64, limit int, f func(*StoredRow) error) error {
	l.flush(ctx)
	return l.db.EachStored(ctx, after, limit, f)
}

// Ends returns the row before the first one of the log, and the newest one. A log that is being created has none.
func (l *Log) Ends(ctx context.Context) (before, newest Head, err error) {
	first, err := l.db.First(ctx)
	if table.NoTable(err) {
		return before, newest, nil
	}
	if err != nil {
		return before, newest, fmt.Errorf("read the audit log: %w", err)
	}
	last, err := l.db.Newest(ctx)
	if err != nil {
		return before, newest, fmt.Errorf("read the audit log: %w", err)
	}
	return Head{max(first.Seq-1, 0), first.Hash}, Head{last.Seq, last.Hash}, nil
}

// HashOf returns the hash of the row with the number, "" if the log has none.
func (l *Log) HashOf(ctx context.Context, seq int64) (string, error) {
	hash, err := l.db.HashOf(ctx, seq)
	if err != nil {
		return "", fmt.Errorf("read the audit log: %w", err)
	}
	return hash, nil
}

// OpenSignedHead returns the head that a note of [Log.SignedHead] signs, and its origin. It must be signed by one of
// the public keys: the error is [ErrAnotherKey] if it is signed by none.
func OpenSignedHead(note string, keys []string) (h Head, origin string, err error) {
	opened, origin, err := chain.OpenSignedHead(note, keys)
	return Head{opened.Seq, opened.Hash}, origin, err
}

// OriginOf returns the id of the installation whose public key it is, which its signed heads name behind a prefix.
func OriginOf(key string) (id string, ok bool) {
	name, _, _ := strings.Cut(key, "+")
	id, ok = strings.CutPrefix(name, chain.OriginPrefix)
	return id, ok && IsID(id)
}
