package audit

import (
	"context"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
)

// Find returns the rows whose ids begin with prefix, limit at most, oldest first. The error is [ErrNotFound] if there
// is none.
func (l *Log) Find(ctx context.Context, prefix string, limit int) ([]Row, error) {
	prefix = strings.ToUpper(prefix)
	if IsID(prefix) {
		row, err := l.Get(ctx, prefix)
		if err != nil {
			return nil, err
		}
		return []Row{row}, nil
	}
	from, until, ok := PrefixTimes(prefix)
	if !ok {
		return nil, ErrNotFound
	}
	filter := Filter{idPrefix: prefix, Limit: limit, Since: from.Add(-idSlack), Until: until.Add(idSlack)}
	rows, err := l.List(ctx, filter)
	if err == nil && len(rows) == 0 { // a row that was added late has the time at which it happened
		filter.Since, filter.Until = time.Time{}, time.Time{}
		rows, err = l.List(ctx, filter)
	}
	if err == nil && len(rows) == 0 {
		err = ErrNotFound
	}
	return rows, err
}

// PrefixTimes returns the times of the first id that begins with prefix, and of the one after the last. It returns
// false if no id of [NewID] begins so.
func PrefixTimes(prefix string) (from, until time.Time, ok bool) {
	if prefix == "" || len(prefix) > ulid.EncodedSize {
		return from, until, false
	}
	pad := ulid.EncodedSize - len(prefix)
	first, err := ulid.ParseStrict(prefix + strings.Repeat("0", pad))
	if err != nil {
		return from, until, false
	}
	last, err := ulid.ParseStrict(prefix + strings.Repeat("Z", pad))
	if err != nil {
		return from, until, false
	}
	return ulid.Time(first.Time()), ulid.Time(min(last.Time(), maxIDTime)).Add(time.Millisecond), true
}

// maxIDTime bounds the times of PrefixTimes, in milliseconds: that of the year 2200.
const maxIDTime = 1000 * lastTime
