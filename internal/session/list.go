package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/detached"
	"github.com/ALRubinger/aileron/internal/format"
	"github.com/ALRubinger/aileron/internal/hint"
)

// State describes one session, running or ended. Its JSON is that of aileron
// session list and show.
type State struct {
	ID     string `json:"id"`
	Agent  string `json:"agent"`
	Mode   string `json:"mode"`
	Sealed bool   `json:"sealed"`
	State  string `json:"state"` // running, ended, unclean, or refused before it began
	PID    int    `json:"pid,omitempty"`

	Detached bool `json:"detached,omitempty"` // its command has no person's terminal
	Attached bool `json:"attached,omitempty"` // but one is attached to it now

	Started time.Time  `json:"started"`
	Ended   *time.Time `json:"ended,omitempty"`
	Exit    *int       `json:"exit_code,omitempty"`
	Cause   string     `json:"cause,omitempty"` // why it ended

	Unknown int `json:"unknown_outcomes,omitempty"` // its requests whose outcome is not known, by rows
	Open    int `json:"without_outcome,omitempty"`  // its requests without a row of their outcome; of Find only
	Spilled int `json:"spilled_rows,omitempty"`     // its last rows, which are not in the audit log yet

	Messages string `json:"messages,omitempty"` // aileron's own about a detached session; for session show

	newer error // a *format.Error: it is a newer aileron's, whose control socket is not known

	Disabled *Disabled `json:"disabled,omitempty"` // its sandbox was not mediated, or not started
}

// Dir returns the directory of a session of home that runs.
func (s State) Dir(home string) string { return filepath.Join(sessionsDir(home), s.ID) }

// Attachable reports whether a person's terminal can be attached to the session: it was detached, and has a command.
func (s State) Attachable() bool { return s.Detached && s.Mode != "proxy" }

// OnHost reports whether the session serves programs of this host, and not a sandbox.
func (s State) OnHost() bool { return Options{Mode: s.Mode}.onHost() }

// Disabled is the reason and the cause of sandbox.proxy.disabled.
type Disabled struct {
	Reason string `json:"reason"`
	Cause  string `json:"cause"`
}

// ErrEnded is returned by [State.Stop] for a session that ended meanwhile.
var ErrEnded = errors.New("the session has ended meanwhile")

// Stop asks the session, which is one of home, to end. It does not wait for the
// end.
func (s State) Stop(ctx context.Context, home string) error {
	if s.State != "running" {
		return hint.New(fmt.Errorf("stop the session %s: it is not running", s.ID),
			"see what runs with: aileron session list")
	}
	if s.newer != nil {
		return fmt.Errorf("stop the session %s: %w", s.ID, s.newer)
	}
	_, err := controlClient{home: home, id: s.ID}.call(ctx, "POST", "/v1/session/stop", nil)
	switch {
	case err == nil:
		return nil
	case !Alive(home, s.ID):
		return ErrEnded
	}
	return hint.New(fmt.Errorf("stop the session %s: %w", s.ID, err),
		"its process may be stopped or at its end; end it with: kill %d", s.PID)
}

// states collects sessions by id.
type states map[string]*State

// loggedEvents returns the events that describe sessions, in the order in which
// [states.add] takes their rows.
func loggedEvents() []audit.Event {
	return []audit.Event{
		audit.EventSessionStarted, audit.EventSandboxDisabled, audit.EventSessionEnded, audit.EventProxyUnknown,
	}
}

// add adds what a row records of its session. The rows of an event come after
// those of the events before it.
func (found states) add(r audit.Row) {
	text := func(name string) string { t, _ := r.Fields[name].(string); return t }
	s := found[r.SessionID]
	if s == nil {
		s = &State{ID: r.SessionID, Started: r.TS, State: "unclean"}
		found[r.SessionID] = s
		if r.Event == audit.EventSandboxDisabled {
			s.State, s.Agent, s.Mode = "refused", text("agent"), text("mode")
		}
	}
	switch r.Event {
	case audit.EventProxyUnknown:
		s.Unknown++
	case audit.EventSessionStarted:
		s.Started, s.Agent, s.Mode = r.TS, text("agent"), text("mode")
		s.Sealed, _ = r.Fields["sealed"].(bool)
		s.Detached, _ = r.Fields["detached"].(bool)
	case audit.EventSandboxDisabled:
		s.Disabled = &Disabled{r.Reason, text("cause")}
	case audit.EventSessionEnded:
		s.end(r, text)
	}
}

// end adds a session.ended.
func (s *State) end(r audit.Row, text func(string) string) {
	s.Ended, s.Cause = &r.TS, text("cause")
	if s.Agent == "" && s.Mode == "" { // stopped before its first row
		s.Agent, s.Mode = text("agent"), text("mode")
	}
	if r.Reason != "unclean" {
		s.State = "ended"
	}
	if code, ok := r.Fields["exit_code"].(float64); ok {
		exit := int(code)
		s.Exit = &exit
	}
}

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
