package audit

import (
	"context"

	"github.com/ALRubinger/aileron/audit/internal/chain"
)

// PrunedRows returns what the newest row of EventPruned with a valid signature stands for; nil if there is none. A log
// that has its first row was not pruned.
func (l *Log) prunedRows(ctx context.Context, keys *chain.Keyring) (found *PrunedRows, err error) {
	first, err := l.db.First(ctx)
	if err != nil || first.Seq <= 1 {
		return nil, err
	}
	err = l.db.PrunedRows(ctx, func(seq int64, fields string) bool {
		if p, s, err := chain.ParsePruned(seq, fields); err == nil && keys.Check(s) == "" {
			found = &p
		}
		return found == nil
	})
	return found, err
}

// wasPruned reports whether the row of h, which the log does not have, is one that a row of EventPruned stands for. The
// signature of this installation is what makes that different from a row that was removed.
func (l *Log) wasPruned(ctx context.Context, h chain.Head) bool {
	first, err := l.db.First(ctx)
	if err != nil || h.Seq < 1 || h.Seq >= first.Seq {
		return false
	}
	k, err := chain.ReadKey(chain.KeyPath(l.path))
	if err != nil {
		return false
	}
	keys, err := chain.NewKeyring([]string{k.Public})
	if err != nil {
		return false
	}
	p, err := l.prunedRows(ctx, keys)
	if err != nil || p == nil || h.Seq > p.Last || first.Seq > p.Last+1 {
		return false
	}
	// Of the row before the first one the hash is known; of those before it only that they were there.
	return h.Seq < first.Seq-1 || h.Hash == first.Hash && (h.Seq < p.Last || h.Hash == p.Hash)
}

// excuses reports whether a breach is only that the row was pruned. This process then knows no row of the log.
func (l *Log) excuses(b *chain.Breach) bool {
	if b.Reason != chain.ReasonRowMissing || !l.wasPruned(context.Background(), b.Expected) {
		return false
	}
	l.known = chain.Head{}
	if l.tx != nil {
		l.tx.Forget()
	}
	return true
}
