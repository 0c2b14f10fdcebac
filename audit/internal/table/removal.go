package table

import (
	"context"
	"errors"
	"fmt"

	"github.com/ALRubinger/aileron/audit/internal/chain"
)

// ErrPlanOutdated is returned by Prune if the log is not the one for which the plan was made.
var ErrPlanOutdated = errors.New("the audit log was pruned or changed meanwhile")

// Removal is what is removed in the transaction of a row.
type Removal struct {
	Last    chain.Head // the newest row of the whole prune, which the log must have
	Through int64      // the rows up to this one are removed
}

// dropNoDelete and removeRows are the statements that remove rows, before noDelete is created again.
const (
	dropNoDelete = "DROP TRIGGER IF EXISTS events_delete"
	removeRows   = "DELETE FROM events WHERE seq <= "
)

// remove removes rows in the transaction of the row that stands for them.
func (t *Writer) remove(r *Removal) error {
	hash, exists, err := t.hash(r.Last.Seq)
	if err != nil {
		return err
	}
	if !exists || hash != r.Last.Hash {
		return ErrPlanOutdated
	}
	for _, query := range Removing(r.Through) {
		if err := t.Conn.Exec(query); err != nil {
			return err
		}
	}
	return nil
}

func Removing(through int64) []string {
	return []string{dropNoDelete, fmt.Sprint(removeRows, through), noDelete}
}

// Remove removes rows for which a row stands, in a transaction of its own.
func (d *Database) Remove(ctx context.Context, through int64) error {
	tx, err := d.SQL().BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	for _, query := range Removing(through) {
		if _, err := tx.ExecContext(ctx, query); err != nil {
			return err
		}
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	// Otherwise the write-ahead log grows to the size of all that is removed.
	_, _ = d.SQL().ExecContext(ctx, "PRAGMA wal_checkpoint(PASSIVE)")
	return nil
}
