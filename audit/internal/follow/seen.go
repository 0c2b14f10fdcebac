package follow

import (
	"context"
	"fmt"
	"time"

	"github.com/ALRubinger/aileron/audit/internal/chain"
	"github.com/ALRubinger/aileron/audit/internal/table"
)

const (
	// maxSeen bounds the rows that Follow remembers.
	maxSeen = 1 << 16
	// maxLoaded bounds those of them that were in the log before it began.
	maxLoaded = 1 << 14
)

// seenRows is the set of the hashes of the newest maxSeen rows that Follow has read.
type seenRows struct {
	hashes  map[string]struct{}
	order   []seenRow // a ring buffer once it is full
	next    int
	horizon time.Time // rows of this time or before may be missing; zero: none is
}

type seenRow struct {
	hash string
	ts   time.Time
}

// load adds the rows of l up to newest.
func (s *seenRows) load(ctx context.Context, l *table.Database, newest int64) error {
	*s = seenRows{hashes: map[string]struct{}{}}
	const query = "SELECT ts, hash FROM events WHERE seq <= ? ORDER BY seq DESC LIMIT ?"
	rows, err := l.SQL().QueryContext(ctx, query, newest, maxLoaded+1)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var ts string
		var row seenRow
		if err := rows.Scan(&ts, &row.hash); err != nil {
			return err
		}
		row.ts, _ = time.Parse(chain.TimeFormat, ts) // zero for a row whose time was changed
		if len(s.order) == maxLoaded {
			s.horizon = row.ts
			break
		}
		s.add(row)
	}
	// The ring drops its oldest entry first.
	for i, j := 0, len(s.order)-1; i < j; i, j = i+1, j-1 {
		s.order[i], s.order[j] = s.order[j], s.order[i]
	}
	return rows.Err()
}

func (s *seenRows) has(hash string) bool { _, ok := s.hashes[hash]; return ok }

// forgot reports whether r may have been read and dropped from the ring.
func (s *seenRows) forgot(r chain.Row) bool { return !s.horizon.IsZero() && !r.TS.After(s.horizon) }

// add adds a row, in place of the oldest one if the ring is full.
func (s *seenRows) add(row seenRow) {
	if s.has(row.hash) {
		return
	}
	s.hashes[row.hash] = struct{}{}
	if len(s.order) < maxSeen {
		s.order = append(s.order, row)
		return
	}
	old := s.order[s.next]
	delete(s.hashes, old.hash)
	if old.ts.After(s.horizon) {
		s.horizon = old.ts
	}
	s.order[s.next] = row
	s.next = (s.next + 1) % maxSeen
}

// flagged scans a row and one more column.
type flagged struct {
	table.Scanner
	flag *bool
}

func (f flagged) Scan(dest ...any) error { return f.Scanner.Scan(append(dest, f.flag)...) }

// chunk returns the next selected rows behind the cursor that were not read before, and with an error those before
// it. Fewer than Chunk are the last ones.
func (f *follower) chunk(ctx context.Context) ([]chain.Row, error) {
	filter := f.Filter
	filter.AfterSeq = 0
	where, args := filter.Terms()
	query := "SELECT " + table.Columns + ", " + where + " FROM events WHERE seq > ? ORDER BY seq"
	rows, err := f.log.SQL().QueryContext(ctx, query, append(args, f.cursor)...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var fresh []chain.Row
	for len(fresh) < Chunk && rows.Next() {
		var selected bool
		r, _, err := table.Scan(flagged{rows, &selected})
		if err != nil && r.Hash == "" {
			return nil, err
		}
		f.cursor = r.Seq
		if err != nil { // its content was changed
			f.notify(Notice{Text: fmt.Sprintf("row %d is not shown", r.Seq), Err: err})
		}
		old := f.seen.has(r.Hash) || r.Seq <= f.highest && f.seen.forgot(r)
		if selected && err == nil && !old {
			fresh = append(fresh, r)
		}
		f.seen.add(seenRow{hash: r.Hash, ts: r.TS})
	}
	f.highest = max(f.highest, f.cursor)
	return fresh, rows.Err()
}

// rewind moves the cursor to the newest row that the log still has and that was read before. Because rows are
// chained, all rows before it were read too.
func (f *follower) rewind(ctx context.Context) (int64, error) {
	f.cursor = 0
	rows, err := f.log.SQL().QueryContext(ctx, "SELECT seq, hash FROM events ORDER BY seq DESC")
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for rows.Next() {
		var seq int64
		var hash string
		if err := rows.Scan(&seq, &hash); err != nil {
			return 0, err
		}
		if f.seen.has(hash) {
			f.cursor = seq
			break
		}
	}
	return f.cursor, rows.Err()
}

// wasPruned reports whether the row at the cursor, which is missing, was pruned: the next row is chained to it.
func (f *follower) wasPruned(ctx context.Context, missing bool) bool {
	if !missing {
		return false
	}
	var prev string
	const query = "SELECT prev_hash FROM events WHERE seq = ?"
	err := f.log.SQL().QueryRowContext(ctx, query, f.cursor+1).Scan(&prev)
	return err == nil && f.seen.has(prev)
}

// print shows one row.
func (f *follower) print(r chain.Row) error {
	if err := f.show(r); err != nil {
		return showError{err}
	}
	return nil
}

// notify sends n, unless it was the last notice.
func (f *follower) notify(n Notice) {
	if n.Text == f.lastNotice {
		return
	}
	if f.lastNotice = n.Text; n.Text != "" && f.notice != nil {
		f.notice(n)
	}
}

func (f *follower) close() {
	if f.log != nil {
		_ = f.log.Close()
		f.log = nil
	}
}
