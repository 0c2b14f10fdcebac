package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/detached"
	"github.com/ALRubinger/aileron/internal/format"
	"github.com/ALRubinger/aileron/internal/hint"
)

// Lister lists the sessions of a home: those that run, from their directories,
// and those that ended, from the audit log.
type Lister struct {
	Home string
	// OpenLog opens the home's audit log for reading. It returns nil if there is
	// none yet.
	OpenLog func() (*audit.Log, error)
	// Warn is called with what makes the list incomplete.
	Warn func(audit.Notice)
}

// List returns the sessions by id, which is the order in which they started. An
// audit log that cannot be read hides the sessions that ended, and only those.
func (l Lister) List(ctx context.Context) ([]State, error) {
	found := states{}
	if err := l.addLogged(ctx, found); audit.IsDamaged(err) {
		clear(found) // a session whose end cannot be read is not called unclean
		l.Warn(audit.Notice{Text: "warning: the audit log cannot be read: no session that ended is shown", Err: err})
	} else if err != nil {
		return nil, err
	}
	if err := l.addSpilled(found); err != nil {
		return nil, err
	}
	l.addRunning(found)
	var all []State
	for _, s := range found {
		switch {
		case s.newer != nil:
			s.Cause = s.newer.Error()
		case s.State == "unclean":
			s.Cause = uncleanCause
		}
		all = append(all, *s)
	}
	slices.SortFunc(all, func(a, b State) int { return strings.Compare(a.ID, b.ID) })
	return all, nil
}

// Find returns the session with an id, or with the only id that begins with it, and
// the number of its requests that have no outcome. The error is a [*NotFoundError] if
// there is none.
func (l Lister) Find(ctx context.Context, id string) (State, error) {
	all, err := l.List(ctx)
	if err != nil {
		return State{}, err
	}
	var found []State
	for _, s := range all {
		if s.ID == id {
			return l.withOpen(ctx, s)
		}
		if id != "" && strings.HasPrefix(s.ID, strings.ToUpper(id)) {
			found = append(found, s)
		}
	}
	switch len(found) {
	case 0:
	case 1:
		return l.withOpen(ctx, found[0])
	default:
		return State{}, hint.New(fmt.Errorf("find the session: the ids of %d begin with %.26q", len(found), id),
			"see the ids with: aileron session list")
	}
	return State{}, hint.New(&NotFoundError{}, "see the ids with: aileron session list")
}

// NotFoundError is returned for an id that no session has.
type NotFoundError struct{}

func (*NotFoundError) Error() string { return "find the session: there is none with that id" }

// ErrorClass is the class of CONTRACT section 4.
func (*NotFoundError) ErrorClass() string { return "invalid_request" }

// ErrorReason is the reason of CONTRACT section 4.
func (*NotFoundError) ErrorReason() string { return "not_found" }

// addLogged adds what the audit log holds.
func (l Lister) addLogged(ctx context.Context, found states) error {
	log, err := l.OpenLog()
	if err != nil || log == nil {
		return err
	}
	defer log.Close()
	for _, event := range loggedEvents() {
		add := func(r audit.Row) error { found.add(r); return nil }
		if err := log.Each(ctx, audit.Filter{Event: event}, add); err != nil {
			return err
		}
	}
	return nil
}

// addSpilled adds the rows that are not in the log yet.
func (l Lister) addSpilled(found states) error {
	spills, err := audit.Spills(filepath.Join(l.Home, "audit.db"))
	for _, s := range spills {
		for _, r := range s.Rows {
			found.add(r)
			found[r.SessionID].Spilled++
		}
	}
	return err
}

// addRunning adds the sessions that have a directory: those that run, and those
// that were killed and are not swept yet.
func (l Lister) addRunning(found states) {
	entries, _ := os.ReadDir(sessionsDir(l.Home)) // an error: nothing runs
	for _, e := range entries {
		d, err := readDescription(filepath.Join(sessionsDir(l.Home), e.Name()))
		newer := errors.As(err, new(*format.Error))
		if newer {
			d = description{ID: e.Name()}
		}
		if d.ID == "" {
			continue
		}
		s := found[d.ID]
		if s == nil {
			s = &State{ID: d.ID, State: "unclean"}
			found[d.ID] = s
		}
		if s.Mode == "" { // its first row is not known
			s.Agent, s.Mode, s.Started = d.Agent, d.Mode, d.Started
		}
		if s.newer = err; !newer {
			s.newer = nil
		}
		s.Detached = s.Detached || d.Detached
		if s.PID = d.PID; Alive(l.Home, d.ID) {
			s.State = "running"
			s.Attached = d.Detached && detached.IsAttached(filepath.Join(sessionsDir(l.Home), e.Name()))
		}
	}
}

// withOpen counts the requests of a session that have no outcome.
func (l Lister) withOpen(ctx context.Context, s State) (State, error) {
	log, err := l.OpenLog()
	if audit.IsDamaged(err) {
		return s, nil // as List has warned
	}
	if err != nil || log == nil {
		return s, err
	}
	defer log.Close()
	if s.Open, err = log.OpenIntents(ctx, s.ID); audit.IsDamaged(err) {
		err = nil // as List has warned
	}
	return s, err
}
