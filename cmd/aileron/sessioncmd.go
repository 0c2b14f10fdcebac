package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/internal/session"
	"github.com/ALRubinger/aileron/internal/termsafe"
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

// lister returns what lists the sessions of a home.
func (a *app) lister(home string) session.Lister {
	return session.Lister{Home: home, OpenLog: a.auditReader, Warn: a.auditNotice}
}

func sessionList(ctx context.Context, a *app) error {
	home, err := a.Home()
	if err != nil {
		return err
	}
	all, err := a.lister(home).List(ctx)
	if err != nil {
		return err
	}
	if a.json {
		if all == nil {
			all = []session.State{}
		}
		return a.printJSON(all)
	}
	if len(all) == 0 {
		a.infof("no session has run in this home; start one with: aileron launch AGENT")
	}
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	for _, s := range all {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s", s.ID, s.State, s.Mode, termsafe.Line(first(s.Agent, "-")), s.Started.Local().Format(time.DateTime))
		if notes := sessionNotes(s); len(notes) > 0 {
			fmt.Fprintf(w, "\t%s", strings.Join(notes, "; "))
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}

func sessionShow(ctx context.Context, a *app, id string) error {
	home, err := a.Home()
	if err != nil {
		return err
	}
	s, err := a.lister(home).Find(ctx, id)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(s)
	}
	line := func(name, value string) { fmt.Fprintf(a.stdout, "%-9s%s\n", name, termsafe.Line(value)) }
	line("id", s.ID)
	line("state", s.State)
	line("agent", first(s.Agent, "-"))
	line("mode", first(s.Mode, "-"))
	line("sealed", strconv.FormatBool(s.Sealed))
	line("started", s.Started.Format(time.RFC3339))
	if s.Disabled != nil {
		line("disabled", s.Disabled.Reason+": "+s.Disabled.Cause)
	}
	if s.Ended != nil {
		line("ended", s.Ended.Format(time.RFC3339))
	}
	if s.Exit != nil {
		line("exit", strconv.Itoa(*s.Exit))
	}
	if s.Cause != "" {
		line("cause", s.Cause)
	}
	for _, note := range sessionNotes(s) {
		line("note", note)
	}
	return nil
}

func sessionStop(ctx context.Context, a *app, id string) error {
	home, err := a.Home()
	if err != nil {
		return err
	}
	s, err := a.lister(home).Find(ctx, id)
	if err != nil {
		return err
	}
	switch err := s.Stop(ctx, home); {
	case errors.Is(err, session.ErrEnded):
		a.infof("aileron: the session %s has ended meanwhile", id)
		return nil
	case err != nil:
		return err
	}
	a.infof("aileron: %s was asked to end", id)
	return nil
}

// notes are what a reader of a session's requests has to know.
func sessionNotes(s session.State) (notes []string) {
	if s.Unknown > 0 {
		notes = append(notes, fmt.Sprintf("unknown outcomes: %d (the session was killed)", s.Unknown))
	}
	switch {
	case s.Open > 0 && s.State == "running":
		notes = append(notes, fmt.Sprintf("requests under way: %d", s.Open))
	case s.Open > 0:
		notes = append(notes, fmt.Sprintf("requests without an outcome: %d (the next session's start records them as unknown)", s.Open))
	}
	if s.Spilled > 0 {
		notes = append(notes, fmt.Sprintf("rows in a spill file: %d (added as soon as the audit log can be written)", s.Spilled))
	}
	return notes
}
