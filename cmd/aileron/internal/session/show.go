package session

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/detached"
	"github.com/ALRubinger/aileron/internal/review"
	"github.com/ALRubinger/aileron/internal/session"
	"github.com/ALRubinger/aileron/internal/termsafe"
)

func newSessionShowCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:     "show ID",
		Short:   "Show one session, and how it ended",
		Example: "  aileron session show 01J…",
		Args:    cli.UsageArgs(cobra.ExactArgs(1)),
		RunE:    func(cmd *cobra.Command, args []string) error { return sessionShow(cmd.Context(), a, args[0]) },
	}
}

func sessionShow(ctx context.Context, a *cli.App, id string) error {
	home, s, err := a.FindSession(ctx, id)
	if err != nil {
		return err
	}
	s.Messages = detached.Messages(home, s.ID)
	uses, err := usesOfSession(ctx, a, s.ID)
	if err != nil {
		return err
	}
	if a.JSON {
		return a.PrintJSON(struct {
			session.State
			Uses []review.Use `json:"uses"`
		}{s, uses})
	}
	out := a.FittedOut()
	line := func(name, value string) { fmt.Fprintf(out, "%-9s%s\n", name, termsafe.Line(value)) }
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
	for text := range strings.Lines(s.Messages) {
		line("message", strings.TrimSuffix(text, "\n"))
	}
	if len(uses) == 0 {
		return nil
	}
	fmt.Fprintln(a.Stdout)
	return review.PrintUses(a.Stdout, uses, a.OutputColumns())
}

// usesOfSession returns what a session used credentials for, in the words of audit summary. It is not nil.
func usesOfSession(ctx context.Context, a *cli.App, id string) ([]review.Use, error) {
	l, err := a.AuditReader()
	if audit.IsDamaged(err) || l == nil {
		return []review.Use{}, nil // as the list of sessions has warned
	}
	if err != nil {
		return nil, err
	}
	defer l.Close()
	groups, err := l.Groups(ctx, audit.Filter{Session: id}, audit.GroupBy{})
	if audit.IsDamaged(err) {
		err = nil // as above
	}
	agents := review.Agents{Open: func() (review.Log, error) { return l, nil }}
	return append([]review.Use{}, review.Uses(ctx, groups, &agents)...), err
}
