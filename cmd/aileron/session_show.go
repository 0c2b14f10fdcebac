package main

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/internal/termsafe"
)

func newSessionShowCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "show ID",
		Short:   "Show one session, and how it ended",
		Example: "  aileron session show 01J…",
		Args:    usageArgs(cobra.ExactArgs(1)),
		RunE:    func(cmd *cobra.Command, args []string) error { return sessionShow(cmd.Context(), a, args[0]) },
	}
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
	line("agent", cmp.Or(s.Agent, "-"))
	line("mode", cmp.Or(s.Mode, "-"))
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
