package audit

import (
	"context"
	"maps"
	"slices"
	"time"
)

// Unfinished are the intents that no outcome of the selected rows stands for, oldest first.
type Unfinished struct {
	Rows []UnfinishedRow
	More int // older ones that are left out
}

// UnfinishedRow is one of Unfinished.
type UnfinishedRow struct {
	Row
	State UnfinishedState
}

// UnfinishedState is what became of an intent.
type UnfinishedState int

// The states of an intent that no outcome of the selected rows stands for.
const (
	IntentWaiting UnfinishedState = iota // its request is under way
	IntentLater                          // its outcome is later than the selected rows
	IntentLost                           // its session ended, and the log has no outcome of it
)

// maxUnfinished bounds the rows of Unfinished.
const maxUnfinished = 4096

// Unfinished returns the intents that filter selects and that no outcome of the selected rows stands for. Those of
// sessions that had not ended at filter.Until are found however long ago they began; those of others, from the oldest
// outcome on that filter.Limit leaves. At most filter.Limit of them are returned, and 4096, the newest. An intent has
// no decision and no reason: a filter with one selects none.
func (l *Log) Unfinished(ctx context.Context, filter Filter) (u Unfinished, err error) {
	if filter.Decision != "" || filter.Reason != "" || filter.Event != "" {
		return u, nil
	}
	l.flush(ctx)
	lost, err := l.openSinceOldest(ctx, filter)
	if err != nil {
		return u, err
	}
	open, err := l.openOfGoing(ctx, filter)
	if err != nil {
		return u, err
	}
	seqs := slices.Compact(slices.Sorted(slices.Values(slices.Concat(lost, open))))
	most := maxUnfinished
	if filter.Limit > 0 {
		most = min(filter.Limit, most)
	}
	u.More = max(0, len(seqs)-most)
	seqs = seqs[u.More:]
	later, err := l.withOutcome(ctx, filter, seqs)
	if err != nil {
		return u, err
	}
	ended := map[string]bool{} // sessions
	for _, seq := range seqs {
		r, err := l.db.Row(ctx, seq)
		if err != nil {
			return u, err
		}
		if _, known := ended[r.SessionID]; !known {
			end, err := l.List(ctx, Filter{Session: r.SessionID, Event: EventSessionEnded, Limit: 1})
			if err != nil {
				return u, err
			}
			ended[r.SessionID] = len(end) > 0
		}
		state := IntentWaiting
		switch {
		case later[seq]:
			state = IntentLater
		case ended[r.SessionID]:
			state = IntentLost
		}
		u.Rows = append(u.Rows, UnfinishedRow{r, state})
	}
	return u, nil
}

// openSinceOldest returns the numbers of the selected intents without an outcome, from the oldest outcome on that
// filter.Limit leaves.
func (l *Log) openSinceOldest(ctx context.Context, filter Filter) ([]int64, error) {
	if filter.Limit > 0 && filter.Newest {
		oldest, n := int64(0), 0
		outcomes := filter
		outcomes.NoIntents = true
		err := l.db.EachSeq(ctx, outcomes, func(seq int64) error { oldest, n = seq, n+1; return nil })
		if err != nil {
			return nil, err
		}
		if n == filter.Limit {
			filter.AfterSeq = max(filter.AfterSeq, oldest-1)
		}
	}
	return l.db.OpenSeqs(ctx, filter, filter.Sessions, filter.Until)
}

// openOfGoing returns the numbers of the selected intents without an outcome of sessions that had not ended, whenever
// they began.
func (l *Log) openOfGoing(ctx context.Context, filter Filter) ([]int64, error) {
	going, err := l.db.Going(ctx, filter)
	if err != nil || len(going) == 0 {
		return nil, err
	}
	filter.Since, filter.AfterSeq = time.Time{}, slices.Min(slices.Collect(maps.Values(going)))-1
	return l.db.OpenSeqs(ctx, filter, slices.Sorted(maps.Keys(going)), filter.Until)
}

// withOutcome returns those intents, by their numbers, whose outcome is after filter.Until.
func (l *Log) withOutcome(ctx context.Context, filter Filter, seqs []int64) (map[int64]bool, error) {
	if filter.Until.IsZero() || len(seqs) == 0 {
		return nil, nil
	}
	filter.Since, filter.AfterSeq = time.Time{}, seqs[0]-1
	open, err := l.db.OpenSeqs(ctx, filter, filter.Sessions, time.Time{})
	later := map[int64]bool{}
	for _, seq := range seqs {
		if _, isOpen := slices.BinarySearch(open, seq); !isOpen {
			later[seq] = true
		}
	}
	return later, err
}
