package review

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/audit"
)

// Waiting is shown as the decision of a request that is under way.
const Waiting = "waiting"

// Unfinished are the requests that no outcome stands for.
type Unfinished struct {
	Ended   []audit.UnfinishedRow // without an outcome, or with one that is not selected
	Waiting []audit.UnfinishedRow // under way
	Note    string                // how many others there are, or may be; "": none
}

// FindUnfinished returns the requests that no outcome among those of a filter stands for. It changes the filter to the
// rows that it saw.
func FindUnfinished(ctx context.Context, l Log, filter *audit.Filter) (u Unfinished, err error) {
	newest, err := l.List(ctx, audit.Filter{Limit: 1, Newest: true})
	if err != nil || len(newest) == 0 {
		return u, err
	}
	filter.ThroughSeq = newest[0].Seq
	all, err := l.Unfinished(ctx, *filter)
	for _, r := range all.Rows {
		if r.State == audit.IntentWaiting {
			u.Waiting = append(u.Waiting, r)
		} else {
			u.Ended = append(u.Ended, r)
		}
	}
	if all.More > 0 {
		u.Note = fmt.Sprintf("aileron: %d more requests are under way or have no outcome: --limit 0 lists the newest 4096 "+
			"of them, --rows every row", all.More)
	}
	if all.Since > 0 {
		u.Note = strings.TrimPrefix(fmt.Sprintf("%s\naileron: requests that are under way since before row %d are left out: "+
			"aileron audit list --limit 0 looks for them", u.Note, all.Since), "\n")
	}
	return u, err
}

// Each calls show for the rows of a filter without intents, for u.Ended in their places, and for u.Waiting at the end,
// each with what is shown in place of its decision, until the first error.
func (u Unfinished) Each(
	ctx context.Context, l Log, filter audit.Filter, show func(r audit.Row, decision string) error,
) error {
	ended := u.Ended
	err := l.Each(ctx, filter, func(r audit.Row) error {
		for ; len(ended) > 0 && ended[0].Seq < r.Seq; ended = ended[1:] {
			if err := show(ended[0].Row, DecisionOf(ended[0])); err != nil {
				return err
			}
		}
		return show(r, "")
	})
	for _, r := range slices.Concat(ended, u.Waiting) {
		if err == nil {
			err = show(r.Row, DecisionOf(r))
		}
	}
	return err
}

// DecisionOf returns what is shown as the decision of a request that no outcome stands for; "" for that of its row.
func DecisionOf(r audit.UnfinishedRow) string {
	switch r.State {
	case audit.IntentWaiting:
		return Waiting
	case audit.IntentLost:
		return "unknown"
	}
	return ""
}
