package review

import (
	"context"
	"errors"

	"github.com/ALRubinger/aileron/audit"
)

// maxAgents bounds the sessions whose agents are remembered.
const maxAgents = 1 << 16

// Agents returns the agents of sessions, which only the rows of a session's start and end have. It looks for a session
// once, by the index of the log.
type Agents struct {
	// Open opens the log for a lookup. It returns nil if there is no log. The log is not closed.
	Open func() (Log, error)

	known map[string]string // by session
}

// Of returns the agent of a row's session, or "" if the log does not have it.
func (a *Agents) Of(ctx context.Context, r audit.Row) string {
	if r.SessionID == "" {
		return ""
	}
	if agent, ok := agentOf(r); ok {
		a.remember(r.SessionID, agent)
		return agent
	}
	if agent, ok := a.known[r.SessionID]; ok {
		return agent
	}
	agent, err := a.find(ctx, r.SessionID)
	if err == nil || errors.Is(err, audit.ErrNotFound) {
		a.remember(r.SessionID, agent)
	}
	return agent
}

// Load looks for the agents of all sessions at once.
func (a *Agents) Load(ctx context.Context, l Log) error {
	return l.Each(ctx, audit.Filter{Event: audit.EventSessionStarted}, func(r audit.Row) error {
		if _, known := a.known[r.SessionID]; !known {
			agent, _ := agentOf(r)
			a.remember(r.SessionID, agent)
		}
		return nil
	})
}

// find looks up the agent of a session in the log.
func (a *Agents) find(ctx context.Context, session string) (string, error) {
	l, err := a.Open()
	if err != nil || l == nil {
		return "", err
	}
	row, err := l.SessionStart(ctx, session)
	agent, _ := agentOf(row)
	return agent, err
}

func (a *Agents) remember(session, agent string) {
	if a.known == nil || len(a.known) >= maxAgents {
		a.known = map[string]string{}
	}
	a.known[session] = agent
}

// agentOf returns the agent that a row names, and whether it is a row that names one.
func agentOf(r audit.Row) (string, bool) {
	switch r.Event {
	case audit.EventSessionStarted, audit.EventSessionEnded, audit.EventSandboxDisabled:
		agent, ok := r.Fields["agent"].(string)
		return agent, ok
	}
	return "", false
}
