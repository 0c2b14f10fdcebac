package audit

import (
	"context"
	"errors"
)

// SessionStart returns the row of session.started of a session. The error is [ErrNotFound] if the log has none. The
// search begins at the time in the session's id, and uses the index.
func (l *Log) SessionStart(ctx context.Context, session string) (Row, error) {
	filter := Filter{Session: session, Event: EventSessionStarted, Limit: 1}
	if made, ok := idTime(session); ok {
		from, err := l.seqAt(ctx, made.Add(-idSlack))
		if err != nil {
			return Row{}, err
		}
		filter.AfterSeq = from - 1
	}
	row, err := l.first(ctx, filter)
	if errors.Is(err, ErrNotFound) && filter.AfterSeq > 0 { // a clock ran backwards
		filter.AfterSeq = 0
		row, err = l.first(ctx, filter)
	}
	return row, err
}

// first returns the first row that the filter selects, without waiting for rows that are only in a journal:
// session.started is never only there.
func (l *Log) first(ctx context.Context, filter Filter) (row Row, err error) {
	err = l.each(ctx, filter, columns, func(s scanner) (err error) {
		row, _, err = scan(s)
		return err
	})
	if err == nil && row.Seq == 0 {
		err = ErrNotFound
	}
	return row, err
}
