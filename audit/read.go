package audit

import (
	"context"
	"errors"
	"maps"
	"runtime"
	"slices"
	"time"

	"github.com/ALRubinger/aileron/audit/internal/chain"
	"github.com/ALRubinger/aileron/audit/internal/follow"
	"github.com/ALRubinger/aileron/audit/internal/table"
)

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
	groups, _, err := l.db.Group(ctx, filter, by)
	return groups, err
}

// SessionStart returns the row of session.started of a session. The error is [ErrNotFound] if the log has none. It
// does not wait for rows that are only in a journal: session.started is never only there.
func (l *Log) SessionStart(ctx context.Context, session string) (Row, error) {
	return l.db.SessionStart(ctx, session)
}

// maxNames bounds the names of one kind that a summary counts one by one. Others are counted as OtherHosts.
const maxNames = 256

// Summary counts the rows that a filter selects.
type Summary struct {
	Rows      int64            `json:"rows"`
	First     *time.Time       `json:"first,omitempty"`
	Last      *time.Time       `json:"last,omitempty"`
	Events    map[string]int64 `json:"events"`
	Decisions map[string]int64 `json:"decisions"`
	Reasons   map[string]int64 `json:"reasons"`

	Counted int64 `json:"counted_requests"` // refused requests that only a count in a row records
	Unknown int64 `json:"unknown_outcomes"` // rows of EventProxyUnknown
	Open    int   `json:"without_outcome"`  // intents without any outcome; at most 65536 are counted
	Spilled int   `json:"spilled_rows"`     // rows of journals that the log does not have yet
}

// Summarize counts the selected rows, and returns their groups, intents included. The outcome of a selected intent is
// looked for in the whole log, if its session has not ended.
func (l *Log) Summarize(ctx context.Context, filter Filter) (Summary, []Group, error) {
	var s Summary
	groups, err := l.countOpen(ctx, filter, &s)
	if err != nil {
		return s, nil, err
	}
	open := s.Open
	s = SummaryOf(groups)
	s.Open = open
	spills, err := Spills(l.path)
	for _, spill := range spills {
		if filter.Session == "" || filter.Session == spill.Session {
			s.Spilled += len(spill.Rows)
		}
	}
	return s, groups, err
}

// SummaryOf returns the counts of groups that have intents too.
func SummaryOf(groups []Group) Summary {
	s := Summary{Events: map[string]int64{}, Decisions: map[string]int64{}, Reasons: map[string]int64{}}
	for _, g := range groups {
		s.add(g)
	}
	s.Unknown = s.Events[string(EventProxyUnknown)]
	return s
}

// countOpen counts the selected intents without an outcome, and returns the groups of the selected rows. Only sessions
// that have not ended have such intents.
func (l *Log) countOpen(ctx context.Context, filter Filter, s *Summary) ([]Group, error) {
	ended, err := l.Groups(ctx, Filter{Event: EventSessionEnded, Session: filter.Session, Sessions: filter.Sessions},
		GroupBy{})
	if err != nil {
		return nil, err
	}
	by := GroupBy{Intents: true}
	isEnded, going := map[string]bool{}, map[string]bool{}
	for _, g := range ended {
		isEnded[g.Session] = true
	}
	if filter.SelectsOutcomes() {
		by.Ended = isEnded
	}
	groups, open, err := l.db.Group(ctx, filter, by)
	if err != nil {
		return nil, err
	}
	if open != nil && open.Full == 0 {
		s.Open = min(len(open.Seqs), chain.MaxOpen)
		return groups, nil
	}
	for _, g := range groups {
		if g.Event == EventProxyStarted && !isEnded[g.Session] {
			going[g.Session] = true
		}
	}
	if len(going) > 0 {
		s.Open, err = l.openOf(ctx, filter, slices.Sorted(maps.Keys(going)))
	}
	return groups, err
}

// openOf returns the number of the selected intents of sessions without an outcome. The rows of a request are of one
// session, and sessions in the order of their ids are mostly those of consecutive parts of the log: goroutines look at
// some of them each.
func (l *Log) openOf(ctx context.Context, filter Filter, sessions []string) (n int, err error) {
	parts := min(len(sessions), runtime.GOMAXPROCS(0), maxOpenParts)
	type result struct {
		open int
		err  error
	}
	results := make(chan result, parts)
	for i := range parts {
		some := sessions[len(sessions)*i/parts : len(sessions)*(i+1)/parts]
		go func() {
			open, err := l.db.OpenSeqs(ctx, filter, some, time.Time{})
			results <- result{len(open), err}
		}()
	}
	for range parts {
		r := <-results
		n, err = n+r.open, errors.Join(err, r.err)
	}
	return min(n, chain.MaxOpen), err
}

// maxOpenParts bounds the goroutines of openOf.
const maxOpenParts = 4

// add counts the rows of a group.
func (s *Summary) add(g Group) {
	s.Rows += g.Rows
	if s.First == nil || g.First.Before(*s.First) {
		s.First = &g.First
	}
	if s.Last == nil || g.Last.After(*s.Last) {
		s.Last = &g.Last
	}
	count(s.Events, string(g.Event), g.Rows)
	count(s.Decisions, string(g.Decision), g.Rows)
	count(s.Reasons, g.Reason, g.Rows)
	s.Counted += g.Counted
}

// count counts the rows of a name, unless it is empty.
func count(names map[string]int64, name string, rows int64) {
	if name == "" {
		return
	}
	if _, known := names[name]; !known && len(names) >= maxNames {
		name = OtherHosts
	}
	names[name] += rows
}

// Follow calls show for the selected rows of the log at path (the newest filter.Limit of them if Newest is set), and
// then for each new row, of any process, until ctx ends; then it returns nil. The log may be created later, and may
// be replaced or restored meanwhile: Follow calls notice, unless it is nil, continues with the file that is at path
// then, and shows no row twice. filter.NoIntents leaves intents out of the first rows alone. It returns errors of show,
// and that of a log that cannot be read at the start.
func Follow(ctx context.Context, path string, filter Filter, show func(Row) error, notice func(Notice)) error {
	from := follow.Source{Path: path, Filter: filter, Settle: func() { SettleKilled(path) }}
	from.Open = func() (*table.Database, error) {
		l, err := OpenReader(path)
		if err != nil {
			return nil, err
		}
		return l.db, nil
	}
	return follow.Follow(ctx, from, show, notice)
}

// Follow calls the function [Follow] with the log's own path, and without notices.
func (l *Log) Follow(ctx context.Context, filter Filter, show func(Row) error) error {
	l.flush(ctx)
	return Follow(ctx, l.path, filter, show, nil)
}
