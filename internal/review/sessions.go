package review

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/ALRubinger/aileron/audit"
)

// SessionsOf returns the ids of the sessions of an agent, in the order in which they started. It is not nil.
func SessionsOf(ctx context.Context, l Log, agent string) ([]string, error) {
	found := []string{}
	err := eachSession(ctx, l, audit.Filter{}, func(r audit.Row) {
		if name, _ := agentOf(r); name == agent && !slices.Contains(found, r.SessionID) {
			found = append(found, r.SessionID)
		}
	})
	return found, err
}

// startSlack is how much later than its id, or earlier, a session may start: an image may have to be built first.
const startSlack = 24 * time.Hour

// SessionsWith returns the ids of the sessions that begin with prefix, in the order in which they started.
func SessionsWith(ctx context.Context, l Log, prefix string) (found []string, err error) {
	prefix = strings.ToUpper(prefix)
	var filter audit.Filter
	if from, until, ok := audit.PrefixTimes(prefix); ok {
		filter.Since, filter.Until = from.Add(-startSlack), until.Add(startSlack)
	}
	add := func(r audit.Row) {
		if strings.HasPrefix(r.SessionID, prefix) && !slices.Contains(found, r.SessionID) {
			found = append(found, r.SessionID)
		}
	}
	if err = eachSession(ctx, l, filter, add); err == nil && len(found) == 0 && !filter.Since.IsZero() {
		err = eachSession(ctx, l, audit.Filter{}, add) // a clock was set
	}
	return found, err
}

// eachSession calls f for the row of each session's start, and of what was not started.
func eachSession(ctx context.Context, l Log, filter audit.Filter, f func(audit.Row)) error {
	for _, event := range []audit.Event{audit.EventSessionStarted, audit.EventSandboxDisabled} {
		filter.Event = event
		if err := l.Each(ctx, filter, func(r audit.Row) error { f(r); return nil }); err != nil {
			return err
		}
	}
	return nil
}
