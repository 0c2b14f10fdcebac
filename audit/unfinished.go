package audit

import (
	"context"
	"maps"
	"slices"
	"time"
)

// Unfinished are the intents that no outcome of the selected rows stands for, oldest first.
type Unfinished struct {
	Rows  []UnfinishedRow
	More  int   // older ones that are left out
	Since int64 // the first row that was looked at for what is under way; 0: that of the oldest session
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

// maxGoing is how many rows back a session that has not ended is read if filter.Limit bounds what is returned. It may
// go on for months, and a row takes 3 µs.
const maxGoing = 16 << 10

// Unfinished returns the intents that filter selects and that no outcome of the selected rows stands for. Those of
// sessions that had not ended at filter.Until are found among the last 16384 rows, with a filter.Limit of zero however
// long ago they began; those of others, from the oldest outcome on that filter.Limit leaves. At most filter.Limit of
// them are returned, and 4096, the newest. An intent has no decision and no reason: a filter with one selects none.
func (l *Log) Unfinished(ctx context.Context, filter Filter) (u Unfinished, err error) {
	if filter.Decision != "" || filter.Reason != "" || filter.Event != "" {
		return u, nil
	}
	l.flush(ctx)
	lost, err := l.openSinceOldest(ctx, filter)
	if err != nil {
		return u, err
	}
	open, since, err := l.openOfGoing(ctx, filter)
	if err != nil {
		return u, err
	}
	u.Since = since
	seqs := slices.Compact(slices.Sorted(slices.Values(slices.Concat(lost, open))))
	most := maxUnfinished
	if filter.Limit > 0 {
		most = min(filter.Limit, most)
	}
	u.More = max(0, len(seqs)-most)
	seqs = seqs[u.More:]
	for _, seq := range seqs {
		r, err := l.db.Row(ctx, seq)
		if err != nil {
			return u, err
		}
		u.Rows = append(u.Rows, UnfinishedRow{Row: r})
	}
	later, err := l.withOutcome(ctx, filter, u.Rows)
	if err != nil {
		return u, err
	}
	ended := map[string]bool{} // sessions
	for i, r := range u.Rows {
		if _, known := ended[r.SessionID]; !known {
			end, err := l.List(ctx, Filter{Session: r.SessionID, Event: EventSessionEnded, Limit: 1})
			if err != nil {
				return u, err
			}
			ended[r.SessionID] = len(end) > 0
		}
		switch {
		case later[r.Seq]:
			u.Rows[i].State = IntentLater
		case ended[r.SessionID]:
			u.Rows[i].State = IntentLost
		}
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
	if filter.Binding != "" { // the index finds its first intent; OpenSeqs reads each row from there on
		intents := filter
		intents.Event, intents.Limit, intents.Newest = EventProxyStarted, 1, false
		first, err := l.List(ctx, intents)
		if err != nil || len(first) == 0 {
			return nil, err
		}
		filter.AfterSeq = first[0].Seq - 1
	}
	return l.db.OpenSeqs(ctx, filter, filter.Sessions, filter.Until)
}

// openOfGoing returns the numbers of the selected intents without an outcome of sessions that had not ended, and the
// number of the first row that was looked at; 0 is that of the first of these sessions.
func (l *Log) openOfGoing(ctx context.Context, filter Filter) (open []int64, since int64, err error) {
	going, err := l.db.Going(ctx, filter)
	if err != nil || len(going) == 0 {
		return nil, 0, err
	}
	first := slices.Min(slices.Collect(maps.Values(going)))
	if filter.Limit > 0 {
		last, err := l.List(ctx, Filter{Until: filter.Until, ThroughSeq: filter.ThroughSeq, Limit: 1, Newest: true})
		if err != nil {
			return nil, 0, err
		}
		if len(last) > 0 && first <= last[0].Seq-maxGoing {
			first = last[0].Seq - maxGoing + 1
			since = first
		}
	}
	filter.Since, filter.AfterSeq = time.Time{}, first-1
	open, err = l.db.OpenSeqs(ctx, filter, slices.Sorted(maps.Keys(going)), filter.Until)
	return open, since, err
}

// withOutcome returns which of the intents, by their numbers, have an outcome after filter.Until.
func (l *Log) withOutcome(ctx context.Context, filter Filter, intents []UnfinishedRow) (map[int64]bool, error) {
	if filter.Until.IsZero() || len(intents) == 0 {
		return nil, nil
	}
	var sessions []string
	for _, r := range intents {
		sessions = append(sessions, r.SessionID)
	}
	slices.Sort(sessions)
	filter.Since, filter.AfterSeq = time.Time{}, intents[0].Seq-1
	open, err := l.db.OpenSeqs(ctx, filter, slices.Compact(sessions), time.Time{})
	later := map[int64]bool{}
	for _, r := range intents {
		if _, isOpen := slices.BinarySearch(open, r.Seq); !isOpen {
			later[r.Seq] = true
		}
	}
	return later, err
}
