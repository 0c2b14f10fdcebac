package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/internal/session"
	"github.com/ALRubinger/aileron/internal/termsafe"
)

func newSessionListCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the sessions, running and ended",
		Example: "  aileron session list --json",
		Args:    usageArgs(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return sessionList(cmd.Context(), a) },
	}
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
		return a.printJSON(append([]session.State{}, all...)) // [] and not null
	}
	if len(all) == 0 {
		a.infof("aileron: no sessions; start one with: aileron launch AGENT")
	}
	if columns := a.outputColumns(); columns > 0 {
		return printSessions(a.stdout, all, columns)
	}
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	for _, s := range all {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s",
			s.ID, s.State, s.Mode, termsafe.Line(cmp.Or(s.Agent, "-")), s.Started.Local().Format(time.DateTime))
		if notes := sessionNotes(s); len(notes) > 0 {
			fmt.Fprintf(w, "\t%s", strings.Join(notes, "; "))
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}

// printSessions prints sessions for a terminal of so many columns.
func printSessions(out io.Writer, all []session.State, columns int) error {
	t := table{heads: []string{"session", "state", "mode", "agent", "started", "note"}}
	for _, s := range all {
		t.rows = append(t.rows, []string{s.ID, s.State, s.Mode, cmp.Or(s.Agent, "-"),
			s.Started.Local().Format(time.DateTime), strings.Join(sessionNotes(s), "; ")})
	}
	if len(t.rows) == 0 {
		return nil
	}
	return t.print(out, columns)
}
