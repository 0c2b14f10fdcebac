package audit

import "context"

// Each calls f for every selected row, oldest first, and stops at the first error of f, which it returns.
func (l *Log) Each(ctx context.Context, filter Filter, f func(Row) error) error {
	l.flush(ctx)
	return l.db.EachRow(ctx, filter, f)
}

// EachSeq calls f for the number of every selected row, newest first, and stops at the first error of f, which it
// returns. It costs a fraction of Each. With filter.Limit, the numbers are those of the newest rows.
func (l *Log) EachSeq(ctx context.Context, filter Filter, f func(seq int64) error) error {
	l.flush(ctx)
	return l.db.EachSeq(ctx, filter, f)
}

// List returns the selected rows, oldest first.
func (l *Log) List(ctx context.Context, filter Filter) ([]Row, error) {
	var all []Row
	err := l.Each(ctx, filter, func(r Row) error { all = append(all, r); return nil })
	return all, err
}

// Get returns the row with the id.
func (l *Log) Get(ctx context.Context, id string) (Row, error) {
	l.flush(ctx)
	return l.db.Get(ctx, id)
}

// Find returns the rows whose ids begin with prefix, limit at most, oldest first. The error is [ErrNotFound] if there
// is none.
func (l *Log) Find(ctx context.Context, prefix string, limit int) ([]Row, error) {
	l.flush(ctx)
	return l.db.Find(ctx, prefix, limit)
}

// Groups counts the selected rows, in the order in which their columns first occur. It reads each row once, and no more
// of it than it counts. Several goroutines read a long log, each a part of it.
func (l *Log) Groups(ctx context.Context, filter Filter, by GroupBy) ([]Group, error) {
	l.flush(ctx)
	return l.db.Group(ctx, filter, by)
}

// SessionStart returns the row of session.started of a session. The error is [ErrNotFound] if the log has none. It
// does not wait for rows that are only in a journal: session.started is never only there.
func (l *Log) SessionStart(ctx context.Context, session string) (Row, error) {
	return l.db.SessionStart(ctx, session)
}
