package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/audit"
)

func newSessionCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "session",
		Short: "See and end sessions",
		Args:  cobra.ArbitraryArgs,
		RunE:  subcommandNeeded,
	}
	cmd.AddCommand(
		&cobra.Command{Use: "list", Short: "List the running sessions and the ended ones", Args: usageArgs(cobra.NoArgs), Example: "  aileron session list --json",
			RunE: func(cmd *cobra.Command, _ []string) error { return sessionList(cmd.Context(), a) }},
		&cobra.Command{Use: "show ID", Short: "Show what a session is and how it ended", Args: usageArgs(cobra.ExactArgs(1)), Example: "  aileron session show 01J…",
			RunE: func(cmd *cobra.Command, args []string) error { return sessionShow(cmd.Context(), a, args[0]) }},
		&cobra.Command{Use: "stop ID", Short: "Ask a running session to end", Args: usageArgs(cobra.ExactArgs(1)), Example: "  aileron session stop 01J…",
			RunE: func(cmd *cobra.Command, args []string) error { return sessionStop(cmd.Context(), a, args[0]) }},
	)
	return cmd
}

// sessionState is one session as session list shows it.
type sessionState struct {
	ID      string     `json:"id"`
	Agent   string     `json:"agent"`
	Mode    string     `json:"mode"`
	Sealed  bool       `json:"sealed"`
	State   string     `json:"state"` // running, ended or unclean
	PID     int        `json:"pid,omitempty"`
	Started time.Time  `json:"started"`
	Ended   *time.Time `json:"ended,omitempty"`
	Exit    *int       `json:"exit_code,omitempty"`
}

// sessions puts together what runs and what the audit log remembers.
func (a *app) sessions(ctx context.Context) ([]sessionState, error) {
	home, err := a.Home()
	if err != nil {
		return nil, err
	}
	found := map[string]*sessionState{}
	if l, err := a.auditReader(); err != nil {
		return nil, err
	} else if l != nil {
		defer l.Close()
		for _, event := range []string{audit.EventSessionStarted, audit.EventSessionEnded} {
			if err := l.Each(ctx, audit.Filter{Event: event}, func(r audit.Row) error { note(found, r); return nil }); err != nil {
				return nil, err
			}
		}
	}
	entries, _ := os.ReadDir(filepath.Join(home, "sessions")) // none: nothing runs
	for _, e := range entries {
		var info sessionInfo
		raw, err := os.ReadFile(filepath.Join(home, "sessions", e.Name(), "session.json"))
		if err != nil || json.Unmarshal(raw, &info) != nil {
			continue
		}
		s := found[info.ID]
		if s == nil {
			s = &sessionState{ID: info.ID, Agent: info.Agent, Mode: info.Mode, Started: info.Started, State: "unclean"}
			found[info.ID] = s
		}
		if s.PID = info.PID; alive(home, info.ID) {
			s.State = "running"
		}
	}
	var all []sessionState
	for _, s := range found {
		all = append(all, *s)
	}
	slices.SortFunc(all, func(a, b sessionState) int { return strings.Compare(a.ID, b.ID) })
	return all, nil
}

func note(found map[string]*sessionState, r audit.Row) {
	s := found[r.SessionID]
	if s == nil {
		s = &sessionState{ID: r.SessionID, Started: r.TS, State: "unclean"}
		found[r.SessionID] = s
	}
	if r.Event == audit.EventSessionStarted {
		s.Started = r.TS
		s.Agent, _ = r.Fields["agent"].(string)
		s.Mode, _ = r.Fields["mode"].(string)
		s.Sealed, _ = r.Fields["sealed"].(bool)
		return
	}
	s.Ended = &r.TS
	if r.Reason != "unclean" {
		s.State = "ended"
	}
	if code, ok := r.Fields["exit_code"].(float64); ok {
		exit := int(code)
		s.Exit = &exit
	}
}

func sessionList(ctx context.Context, a *app) error {
	all, err := a.sessions(ctx)
	if err != nil {
		return err
	}
	if a.json {
		if all == nil {
			all = []sessionState{}
		}
		return a.printJSON(all)
	}
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	for _, s := range all {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", s.ID, s.State, s.Mode, inert(first(s.Agent, "-")), s.Started.Local().Format(time.DateTime))
	}
	return w.Flush()
}

func (a *app) findSession(ctx context.Context, id string) (sessionState, error) {
	all, err := a.sessions(ctx)
	if err != nil {
		return sessionState{}, err
	}
	for _, s := range all {
		if s.ID == id {
			return s, nil
		}
	}
	return sessionState{}, hint(errors.New("find the session: there is none with that id"), "aileron session list shows the ids")
}

func sessionShow(ctx context.Context, a *app, id string) error {
	s, err := a.findSession(ctx, id)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(s)
	}
	fmt.Fprintf(a.stdout, "id       %s\nstate    %s\nagent    %s\nmode     %s\nsealed   %v\nstarted  %s\n", s.ID, s.State, inert(s.Agent), s.Mode, s.Sealed, s.Started.Format(time.RFC3339))
	if s.Ended != nil {
		fmt.Fprintf(a.stdout, "ended    %s\n", s.Ended.Format(time.RFC3339))
	}
	if s.Exit != nil {
		fmt.Fprintf(a.stdout, "exit     %d\n", *s.Exit)
	}
	return nil
}

func sessionStop(ctx context.Context, a *app, id string) error {
	s, err := a.findSession(ctx, id)
	if err != nil {
		return err
	}
	if s.State != "running" {
		return hint(fmt.Errorf("stop the session %s: it is not running", id), "aileron session list shows what is")
	}
	home, err := a.Home()
	if err != nil {
		return err
	}
	_, err = callControl(ctx, home, id, "POST", "/v1/session/stop", nil)
	return err
}
