package session

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/session"
	"github.com/ALRubinger/aileron/internal/termsafe"
)

func newSessionListCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the sessions, running and ended",
		Example: "  aileron session list --json",
		Args:    cli.UsageArgs(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return sessionList(cmd.Context(), a) },
	}
}

func sessionList(ctx context.Context, a *cli.App) error {
	home, err := a.Home()
	if err != nil {
		return err
	}
	all, err := a.Lister(home).List(ctx)
	if err != nil {
		return err
	}
	if a.JSON {
		return a.PrintJSON(append([]session.State{}, all...)) // [] and not null
	}
	if len(all) == 0 {
		a.Infof("aileron: no sessions; start one with: aileron launch AGENT")
	}
	if columns := a.OutputColumns(); columns > 0 {
		return PrintSessions(a.Stdout, all, columns)
	}
	w := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
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

// PrintSessions prints sessions for a terminal of so many columns.
func PrintSessions(out io.Writer, all []session.State, columns int) error {
	t := console.Table{Heads: []string{"session", "state", "mode", "agent", "started", "note"}}
	for _, s := range all {
		t.Rows = append(t.Rows, []string{s.ID, s.State, s.Mode, cmp.Or(s.Agent, "-"),
			s.Started.Local().Format(time.DateTime), strings.Join(sessionNotes(s), "; ")})
	}
	if len(t.Rows) == 0 {
		return nil
	}
	return t.Print(out, columns)
}
