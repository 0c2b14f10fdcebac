package auditpage

import (
	"context"
	"sync"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/review"
)

// agents are the agents of sessions, for all requests.
type agents struct {
	mu    sync.Mutex
	turn  int // of the log that known is of
	known review.Agents
}

// with calls f with the agents of a log's sessions.
func (a *agents) with(l *openLog, f func(*review.Agents)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.turn != l.turn {
		a.turn, a.known = l.turn, review.Agents{}
	}
	a.known.Open = func() (review.Log, error) { return l.Log, nil }
	f(&a.known)
}

// of returns the agent of a row's session, or "".
func (a *agents) of(ctx context.Context, l *openLog, r audit.Row) (agent string) {
	a.with(l, func(known *review.Agents) { agent = bounded(known.Of(ctx, r), 64) })
	return agent
}
