package rebuild

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/audit/internal/chain"
	"github.com/ALRubinger/aileron/audit/internal/table"
)

// copy writes the rows of the kept file that can be read to a new database, and the event that reports the recovery.
func (r *recovery) copy(ctx context.Context) (err error) {
	if err := table.CreateFile(r.work); err != nil {
		return err
	}
	to, err := sql.Open("sqlite", table.Dsn(r.work)+"?_pragma=journal_mode(DELETE)&_pragma=synchronous(FULL)")
	if err != nil {
		return err
	}
	to.SetMaxOpenConns(1)
	defer func() {
		if closed := to.Close(); err == nil {
			err = closed
		}
	}()
	if err := table.Create(to, chain.BusyTimeout); err != nil {
		return err
	}
	tx, err := to.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	c := rowCopier{ctx: ctx, to: tx}
	if err := c.readable(r); err != nil {
		return err
	}
	if err := r.report(ctx, tx); err != nil {
		return err
	}
	return tx.Commit()
}

// report adds EventRecovered with a number above all numbers of the old log, so that no number is used for two rows.
func (r *recovery) report(ctx context.Context, tx *sql.Tx) error {
	newest, err := r.lost(ctx, tx)
	if err != nil {
		return err
	}
	row := audit.Row{Event: audit.EventRecovered, Source: audit.SourceCLI, Fields: map[string]any{
		"kept": r.done.Kept, "rows": r.done.Rows, "lost": r.done.Lost, "missing": r.done.Missing,
	}}
	if r.done.Lost == 0 {
		delete(row.Fields, "missing")
	}
	var hash string
	err = tx.QueryRowContext(ctx, table.SelectHead).Scan(new(int64), new(string), &hash)
	if errors.Is(err, sql.ErrNoRows) {
		hash, err = chain.ZeroHash, nil
	}
	if err != nil {
		return err
	}
	fields, err := row.Complete(chain.Head{Seq: newest, Hash: hash, Ts: time.Time{}})
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, table.InsertRow,
		row.Seq, row.ID, row.Stamp(), row.Event, row.SessionID, row.Source, row.Decision, row.Reason,
		row.ConnectorFQN, row.ConnectorVersion, row.Tool, row.Operation, row.Binding,
		row.Method, row.Scheme, row.Host, row.Port, row.Path, row.HTTPVersion, row.Status,
		row.RequestBytes, row.ResponseBytes, row.Redactions, row.DurationUS, fields, row.PrevHash, row.Hash)
	return err
}

// lost counts the numbers without a row, up to the highest one in audit.head, the witness or the new log, which it
// returns.
func (r *recovery) lost(ctx context.Context, tx *sql.Tx) (newest int64, err error) {
	if newest, err = r.dropPruned(ctx, tx); err != nil {
		return 0, err
	}
	rows, err := tx.QueryContext(ctx, "SELECT seq FROM events ORDER BY seq")
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for rows.Next() {
		var seq int64
		if err := rows.Scan(&seq); err != nil {
			return 0, err
		}
		r.gap(newest+1, seq-1)
		newest = max(newest, seq)
		r.done.Rows++
	}
	if err := rows.Err(); err != nil {
		return 0, err
	}
	top := newest
	for _, h := range r.heads() {
		if h.Seq < maxSeq {
			top = max(top, h.Seq)
		}
	}
	r.gap(newest+1, top)
	return top, nil
}

// dropPruned removes rows that were pruned, and that pages no longer in use still had. It returns the number up to
// which rows were pruned, and not lost; 0 if none were.
func (r *recovery) dropPruned(ctx context.Context, tx *sql.Tx) (last int64, err error) {
	k, err := chain.ReadKey(chain.KeyPath(r.path))
	if err != nil {
		return 0, nil //nolint:nilerr // without the key, the row may be anyone's
	}
	if last, err = prunedBefore(ctx, tx, k); err != nil || last == 0 {
		return 0, err
	}
	for _, query := range table.Removing(last) {
		if _, err := tx.ExecContext(ctx, query); err != nil {
			return 0, err
		}
	}
	return last, nil
}

// prunedBefore returns the number of the last row for which a row of EventPruned with a signature of k stands.
func prunedBefore(ctx context.Context, tx *sql.Tx, k *chain.SignKey) (last int64, err error) {
	keys, err := chain.NewKeyring([]string{k.Public})
	if err != nil {
		return 0, err
	}
	rows, err := tx.QueryContext(ctx, "SELECT seq, fields FROM events WHERE event = ?", audit.EventPruned)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for rows.Next() {
		var seq int64
		var fields string
		if err := rows.Scan(&seq, &fields); err != nil {
			return 0, err
		}
		if p, s, err := chain.ParsePruned(seq, fields); err == nil && keys.Check(s) == "" {
			last = max(last, p.Last)
		}
	}
	return last, rows.Err()
}

// maxSeq is the highest number that is believed if it does not come from the table itself.
const maxSeq = 1 << 53

// heads returns the rows that the log should have, according to audit.head and the witness. Lines that cannot be read
// are left to Verify.
func (r *recovery) heads() (list []chain.Head) {
	h := chain.NewHeadFile(r.path)
	if w, err := chain.ReadWitness(h.WitnessPath); err == nil && w.Readable {
		list = append(list, w.Line.Head)
	}
	f, err := os.Open(h.Path) // this process holds its lock already
	if err != nil {
		return list
	}
	defer f.Close()
	known, err := chain.ParseHeads(io.LimitReader(f, chain.MaxHeads+1))
	if err != nil {
		return list
	}
	for _, line := range known.Lines {
		if line.State == chain.LineHead {
			list = append(list, line.Head)
		}
	}
	return list
}

// gap records the lost rows from and to, if there are any.
func (r *recovery) gap(from, to int64) {
	if from > to {
		return
	}
	r.done.Lost += to - from + 1
	text := fmt.Sprintf("%d-%d", from, to)
	if from == to {
		text = fmt.Sprint(from)
	}
	switch n := len(r.done.Missing); {
	case n < maxRanges:
		r.done.Missing = append(r.done.Missing, text)
	case n == maxRanges:
		r.done.Missing = append(r.done.Missing, "and more")
	}
}

// rowCopier copies rows as they are stored.
type rowCopier struct {
	ctx context.Context //nolint:containedctx // of the recovery, whose lifetime the copier shares
	to  *sql.Tx
}

// add copies one row, unless there is already one with its number.
func (c *rowCopier) add(values []any) error {
	const query = "INSERT OR IGNORE INTO events (" + table.Columns + ") VALUES " + table.Placeholders
	_, err := c.to.ExecContext(c.ctx, query, values...)
	if table.IsMismatch(err) {
		return nil // a value does not have its column's type: the row cannot be read
	}
	return err
}

// readable copies the rows that can be read: through the table, from both ends; and, where the table is damaged, from
// every page.
func (c *rowCopier) readable(r *recovery) error {
	source, close, err := r.source(c.ctx)
	if err != nil {
		return err
	}
	defer close()
	damaged, err := c.table(source, "ORDER BY seq")
	if err != nil || !damaged {
		return err
	}
	if _, err := c.table(source, "ORDER BY seq DESC"); err != nil {
		return err
	}
	// Copy rows that match their hash first: a page that is no longer in use may have an older version of a row.
	for _, whole := range []bool{true, false} {
		if err := c.pages(source, whole); err != nil {
			return err
		}
	}
	return nil
}

// table copies rows in the given order until one cannot be read.
func (c *rowCopier) table(source *sql.DB, order string) (damaged bool, err error) {
	//nolint:gosec // constants of ours
	rows, err := source.QueryContext(c.ctx, "SELECT "+table.Columns+" FROM events "+order)
	if err != nil {
		return true, ignoreDamage(err)
	}
	defer rows.Close()
	values, dest := make([]any, table.ColumnCount), make([]any, table.ColumnCount)
	for i := range values {
		dest[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(dest...); err != nil {
			return true, ignoreDamage(err)
		}
		if err := c.add(values); err != nil {
			return false, err
		}
	}
	return rows.Err() != nil, ignoreDamage(rows.Err())
}

// ignoreDamage returns err, or nil if it means damage.
func ignoreDamage(err error) error {
	if table.IsDamage(err) {
		return nil
	}
	return err
}

// globEscape escapes the characters that are special to filepath.Glob.
func globEscape(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}
