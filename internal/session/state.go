package session

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/ALRubinger/aileron/audit"
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
