package audit

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/auditlog"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/review"
	"github.com/ALRubinger/aileron/internal/termsafe"
)

func newAuditShowCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:     "show ID",
		Short:   "Tell what happened in one event; with --json, its row",
		Example: "  aileron audit show 01JABCDEF    # or more of the id",
		Args:    cli.UsageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := a.AuditReader()
			if err != nil {
				return err
			}
			if l == nil {
				return hint.New(audit.ErrNotFound, "there is no audit log yet; it begins with the first session")
			}
			defer l.Close()
			row, err := findRow(cmd.Context(), l, args[0])
			if err != nil {
				return err
			}
			if a.JSON {
				return a.PrintJSON(row)
			}
			return printStory(cmd.Context(), a, l, row)
		},
	}
}

// findRow returns the row whose id begins with prefix.
func findRow(ctx context.Context, l *audit.Log, prefix string) (audit.Row, error) {
	row, err := review.FindRow(ctx, l, prefix)
	switch {
	case errors.Is(err, audit.ErrNotFound):
		return row, hint.New(err, "see the ids with: aileron audit list --json")
	case err != nil && !isAmbiguous(err):
		return row, auditlog.Hint(fmt.Errorf("show the audit event: %w", err))
	}
	return row, ambiguousID(err)
}

// printStory prints what a row and those that belong to it tell.
func printStory(ctx context.Context, a *cli.App, l *audit.Log, row audit.Row) error {
	story, err := review.Tell(ctx, l, row)
	if err != nil {
		return auditlog.Hint(fmt.Errorf("show the audit event: %w", err))
	}
	explainStory(a, &story)
	for _, line := range story.Lines() {
		fmt.Fprintf(a.Stdout, "%-12s%s\n", termsafe.Line(line.Name), termsafe.Line(cut(line.Text, maxStoryText)))
	}
	return nil
}

// explainStory adds what the installed connectors have, and the log has not.
func explainStory(a *cli.App, s *review.Story) {
	s.Slot, s.Why = slotOf(a, *s), strings.TrimPrefix(newExplainer(a)(s.Row), "why: ")
}

// maxStoryText bounds a line of a story, in bytes: --json has all of it.
const maxStoryText = 16 << 10

// slotOf returns where the credential of a request was put, by the connector with the content hash that was in force.
func slotOf(a *cli.App, s review.Story) string {
	if s.ConnectorHash == "" || s.Row.Binding == "" || s.Row.Operation == "" {
		return ""
	}
	store, err := a.OpenStore()
	if err != nil {
		return ""
	}
	c, err := store.Load(s.ConnectorHash)
	if err != nil {
		return ", in a slot that is not known: that version of the connector is not installed any more"
	}
	for _, t := range c.Tools {
		for _, op := range t.Operations {
			if t.Name == s.Row.Tool && op.Name == s.Row.Operation && op.Injection != nil {
				return ", in " + op.Injection.In + " " + op.Injection.Name
			}
		}
	}
	return ""
}
