package audit

import (
	"context"
	"errors"
	"fmt"
)

// Rows are removed in parts: each is a transaction of its own, so that a prune of any size holds the lock of the
// database for a moment only, and needs no more of the disk than one part. The first transaction has the row of
// EventPruned, which stands for all of them. From then on it does not matter whether a row that it stands for is still
// there: a prune that is killed leaves a log that verifies, and the next one removes the rest.

// pruneRows is the number of rows of a part: about 6 MiB of the write-ahead log.
const pruneRows = 8192

// ErrPlanOutdated is returned by Prune if the log is not the one for which the plan was made.
var ErrPlanOutdated = errors.New("the audit log was pruned or changed meanwhile")

// removal is what is removed in the transaction of a row.
type removal struct {
	last    head  // the newest row of the whole prune, which the log must have
	through int64 // the rows up to this one are removed
}

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
	} else if err := l.remove(ctx, end); err != nil {
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
		if err := l.remove(ctx, end); err != nil {
			return r, fmt.Errorf("prune the audit log: %w", err)
		}
	}
	l.tidy(plan.Last)
	return r, nil
}

// commitPruned commits the row that stands for the rows of the plan, and removes those up to a number.
func (l *Log) commitPruned(ctx context.Context, plan PrunePlan, through int64) (Row, error) {
	k, err := makeKey(l.path)
	if err != nil {
		return Row{}, err
	}
	p := plan.stands
	signed, err := k.signPruned(&p)
	if err != nil {
		return Row{}, err
	}
	r, err := l.appendRow(ctx, Row{
		Event: EventPruned, Source: l.source(), removal: &removal{last: p.head(), through: through},
		Fields: map[string]any{
			"first_seq": p.First, "last_seq": p.Last, "rows": p.Rows, "last_hash": p.Hash,
			"from": p.From.Format(timeFormat), "until": p.Until.Format(timeFormat),
			"before": plan.before.UTC().Format(timeFormat), checkpointField: signed,
		},
	})
	r.removal = nil
	return r, err
}

// dropNoDelete and removeRows are the statements that remove rows, before noDelete is created again.
const (
	dropNoDelete = "DROP TRIGGER IF EXISTS events_delete"
	removeRows   = "DELETE FROM events WHERE seq <= "
)

// remove removes rows in the transaction of the row that stands for them.
func (t *batchWriter) remove(r *removal) error {
	hash, exists, err := t.hash(r.last.seq)
	if err != nil {
		return err
	}
	if !exists || hash != r.last.hash {
		return ErrPlanOutdated
	}
	for _, query := range removing(r.through) {
		if err := t.conn.exec(query); err != nil {
			return err
		}
	}
	return nil
}

func removing(through int64) []string {
	return []string{dropNoDelete, fmt.Sprint(removeRows, through), noDelete}
}

// remove removes rows for which a row stands, in a transaction of its own.
func (l *Log) remove(ctx context.Context, through int64) error {
	tx, err := l.database().BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	for _, query := range removing(through) {
		if _, err := tx.ExecContext(ctx, query); err != nil {
			return err
		}
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	// Otherwise the write-ahead log grows to the size of all that is removed.
	_, _ = l.database().ExecContext(ctx, "PRAGMA wal_checkpoint(PASSIVE)")
	return nil
}
