package audit

import (
	"context"
	"time"
)

// maxNames bounds the names of one kind that a summary counts one by one.
const maxNames = 256

// otherNames is the name under which a summary counts those beyond maxNames.
const otherNames = "others"

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
	Spilled int   `json:"spilled_rows"`     // rows of spill files that the log does not have yet
}

// Summarize counts the selected rows. The outcome of a selected intent is looked for in the whole log.
func (l *Log) Summarize(ctx context.Context, filter Filter) (Summary, error) {
	s := Summary{Events: map[string]int64{}, Decisions: map[string]int64{}, Reasons: map[string]int64{}}
	if err := l.Each(ctx, filter, func(r Row) error { s.add(r); return nil }); err != nil {
		return s, err
	}
	s.Unknown = s.Events[string(EventProxyUnknown)]
	// An intent has no decision, and its outcome has another event and a later time.
	intents := Filter{Session: filter.Session, Host: filter.Host, Connector: filter.Connector, Since: filter.Since}
	if filter.Decision == "" && (filter.Event == "" || filter.Event == EventProxyStarted) {
		open := newOpenIntents(maxOpen)
		err := l.Each(ctx, intents, func(r Row) error {
			request, _ := r.Fields["request_id"].(string)
			if r.Event != EventProxyStarted || filter.Until.IsZero() || r.TS.Before(filter.Until) {
				open.add(r.Seq, r.Event, request)
			}
			return nil
		})
		if err != nil {
			return s, err
		}
		s.Open = len(open.seqs)
	}
	spills, err := Spills(l.path)
	for _, spill := range spills {
		if filter.Session == "" || filter.Session == spill.Session {
			s.Spilled += len(spill.Rows)
		}
	}
	return s, err
}

// add counts one row.
func (s *Summary) add(r Row) {
	s.Rows++
	if s.First == nil {
		s.First = &r.TS
	}
	s.Last = &r.TS
	count(s.Events, string(r.Event))
	count(s.Decisions, string(r.Decision))
	count(s.Reasons, r.Reason)
	if n, ok := r.Fields["requests"].(float64); ok {
		s.Counted += int64(n)
	}
}

// count counts a name, unless it is empty.
func count(names map[string]int64, name string) {
	if name == "" {
		return
	}
	if _, known := names[name]; !known && len(names) >= maxNames {
		name = otherNames
	}
	names[name]++
}
