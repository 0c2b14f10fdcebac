package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/format"
	"github.com/ALRubinger/aileron/internal/hint"
)

// sessionState is one session as session list and show tell of it.
type sessionState struct {
	ID      string     `json:"id"`
	Agent   string     `json:"agent"`
	Mode    string     `json:"mode"`
	Sealed  bool       `json:"sealed"`
	State   string     `json:"state"` // running, ended, unclean, or refused before it began
	PID     int        `json:"pid,omitempty"`
	Started time.Time  `json:"started"`
	Ended   *time.Time `json:"ended,omitempty"`
	Exit    *int       `json:"exit_code,omitempty"`
	Cause   string     `json:"cause,omitempty"` // why it ended

	Unknown int `json:"unknown_outcomes,omitempty"` // its requests whose outcome is not known, by rows
	Open    int `json:"without_outcome,omitempty"`  // of session show: its requests without a row of their outcome
	Spilled int `json:"spilled_rows,omitempty"`     // its last rows, which are not in the audit log yet

	newer error // a *format.Error: a newer aileron's, to which the control socket is not known

	Disabled *disabledState `json:"disabled,omitempty"` // its box was not mediated, or not started
}

// disabledState is what sandbox.proxy.disabled says.
type disabledState struct {
	Reason string `json:"reason"`
	Cause  string `json:"cause"`
}

// uncleanCause is the end of a session that could not say why itself.
const uncleanCause = "the process ended without closing the session"

// sessions puts together what runs and what the audit log remembers.
func (a *app) sessions(ctx context.Context) ([]sessionState, error) {
	home, err := a.Home()
	if err != nil {
		return nil, err
	}
	found := map[string]*sessionState{}
	if err := a.noteLogged(ctx, found); audit.IsDamaged(err) {
		clear(found) // a session whose end cannot be read is not called unclean
		a.auditNotice(audit.Notice{Text: "warning: the audit log cannot be read: no session that ended is shown", Err: err})
	} else if err != nil {
		return nil, err
	}
	if err := noteSpilled(found, home); err != nil {
		return nil, err
	}
	entries, _ := os.ReadDir(filepath.Join(home, "sessions")) // none: nothing runs
	for _, e := range entries {
		info, err := readSessionInfo(filepath.Join(home, "sessions", e.Name()))
		newer := errors.As(err, new(*format.Error))
		if newer {
			info = sessionInfo{ID: e.Name()}
		}
		if info.ID == "" {
			continue
		}
		s := found[info.ID]
		if s == nil {
			s = &sessionState{ID: info.ID, State: "unclean"}
			found[info.ID] = s
		}
		if s.Mode == "" { // its first row is not known
			s.Agent, s.Mode, s.Started = info.Agent, info.Mode, info.Started
		}
		if s.newer = err; !newer {
			s.newer = nil
		}
		if s.PID = info.PID; alive(home, info.ID) {
			s.State = "running"
		}
	}
	var all []sessionState
	for _, s := range found {
		switch {
		case s.newer != nil:
			s.Cause = s.newer.Error()
		case s.State == "unclean":
			s.Cause = uncleanCause
		}
		all = append(all, *s)
	}
	slices.SortFunc(all, func(a, b sessionState) int { return strings.Compare(a.ID, b.ID) })
	return all, nil
}

// noteLogged adds what the audit log tells.
func (a *app) noteLogged(ctx context.Context, found map[string]*sessionState) error {
	l, err := a.auditReader()
	if err != nil || l == nil {
		return err
	}
	defer l.Close()
	for _, event := range []string{audit.EventSessionStarted, audit.EventSandboxDisabled, audit.EventSessionEnded, audit.EventProxyUnknown} {
		if err := l.Each(ctx, audit.Filter{Event: event}, func(r audit.Row) error { note(found, r); return nil }); err != nil {
			return err
		}
	}
	return nil
}

// noteSpilled adds what the rows tell that are not in the log yet.
func noteSpilled(found map[string]*sessionState, home string) error {
	spills, err := audit.Spills(filepath.Join(home, "audit.db"))
	for _, s := range spills {
		for _, r := range s.Rows {
			note(found, r)
			found[r.SessionID].Spilled++
		}
	}
	return err
}

// note adds what a row tells of its session. The rows of an event come after
// those of the events before it.
func note(found map[string]*sessionState, r audit.Row) {
	text := func(name string) string { t, _ := r.Fields[name].(string); return t }
	s := found[r.SessionID]
	if s == nil {
		s = &sessionState{ID: r.SessionID, Started: r.TS, State: "unclean"}
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
	case audit.EventSandboxDisabled:
		s.Disabled = &disabledState{r.Reason, text("cause")}
	case audit.EventSessionEnded:
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
}

// noSessionError is an id that no session has.
type noSessionError struct{}

func (noSessionError) Error() string { return "find the session: there is none with that id" }

// ErrorClass and ErrorReason are for --json.
func (noSessionError) ErrorClass() string  { return "invalid_request" }
func (noSessionError) ErrorReason() string { return reasonNotFound }

func (a *app) findSession(ctx context.Context, id string) (sessionState, error) {
	all, err := a.sessions(ctx)
	if err != nil {
		return sessionState{}, err
	}
	for _, s := range all {
		if s.ID == id {
			return a.withOpen(ctx, s)
		}
	}
	return sessionState{}, hint.New(noSessionError{}, "aileron session list shows the ids")
}

// withOpen counts the requests of a session that have no outcome.
func (a *app) withOpen(ctx context.Context, s sessionState) (sessionState, error) {
	l, err := a.auditReader()
	if audit.IsDamaged(err) {
		return s, nil // as sessions has warned
	}
	if err != nil || l == nil {
		return s, err
	}
	defer l.Close()
	if s.Open, err = l.OpenIntents(ctx, s.ID); audit.IsDamaged(err) {
		err = nil // as sessions has warned
	}
	return s, err
}
