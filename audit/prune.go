package audit

import (
	"context"
	"fmt"

	"github.com/ALRubinger/aileron/audit/internal/chain"
	"github.com/ALRubinger/aileron/audit/internal/table"
)

// Rows are removed in parts: each is a transaction of its own, so that a prune of any size holds the lock of the
// database for a moment only, and needs no more of the disk than one part. The first transaction has the row of
// EventPruned, which stands for all of them. From then on it does not matter whether a row that it stands for is still
// there: a prune that is killed leaves a log that verifies, and the next one removes the rest.

// pruneRows is the number of rows of a part: about 6 MiB of the write-ahead log.
const pruneRows = 8192

// Prune removes the rows of a plan, and commits the row of EventPruned that stands for them, which it returns; it has
// no number if an earlier prune has committed it. After each part, progress, unless it is nil, is called with the
// number of rows that were removed so far.
func (l *Log) Prune(ctx context.Context, plan PrunePlan, progress func(removed int64)) (Row, error) {
	if plan.Rows == 0 {
		return Row{}, nil
	}
	end := min(plan.First+pruneRows-1, plan.Last)
	r := Row{}
	if !plan.recorded {
		var err error
		if r, err = l.commitPruned(ctx, plan, end); err != nil {
			return r, fmt.Errorf("prune the audit log: %w", err)
		}
	} else if err := l.db.Remove(ctx, end); err != nil {
		return r, fmt.Errorf("prune the audit log: %w", err)
	}
	for {
		if progress != nil {
			progress(end - plan.First + 1)
		}
		if end == plan.Last {
			break
		}
		end = min(end+pruneRows, plan.Last)
		if err := l.db.Remove(ctx, end); err != nil {
			return r, fmt.Errorf("prune the audit log: %w", err)
		}
	}
	l.tidy(plan.Last)
	return r, nil
}

// commitPruned commits the row that stands for the rows of the plan, and removes those up to a number.
func (l *Log) commitPruned(ctx context.Context, plan PrunePlan, through int64) (Row, error) {
	k, err := chain.MakeKey(l.path)
	if err != nil {
		return Row{}, err
	}
	p := plan.stands
	signed, err := k.SignPruned(&p)
	if err != nil {
		return Row{}, err
	}
	r := Row{
		Event: EventPruned, Source: l.source(),
		Fields: map[string]any{
			"first_seq": p.First, "last_seq": p.Last, "rows": p.Rows, "last_hash": p.Hash,
			"from": p.From.Format(chain.TimeFormat), "until": p.Until.Format(chain.TimeFormat),
			"before": plan.before.UTC().Format(chain.TimeFormat), chain.CheckpointField: signed,
		},
	}
	err = l.appendWith(ctx, []*Row{&r}, table.Extra{Removal: &table.Removal{Last: p.Head(), Through: through}})
	return r, err
}

// tidy cuts what is kept beside the log for rows that were removed. A failure is harmless: nothing reads it.
func (l *Log) tidy(last int64) {
	_ = chain.CutSignedHeads(l.path, last)
	_ = l.db.ClearIndex(last)
}

// Shrink returns the space of removed rows to the file system, unless there is little of it. It rewrites what is left,
// which needs as much space again for a moment, and takes at most 30 s. Rows can be read meanwhile; sessions write to
// their journals. If it does not succeed, the error wraps [ErrNotShrunk] and the log is what it was.
func (l *Log) Shrink(ctx context.Context) (Shrunk, error) { return l.db.Shrink(ctx) }

// prunedRows returns what the newest row of EventPruned with a valid signature stands for; nil if there is none. A log
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
