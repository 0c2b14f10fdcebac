package audit

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/auditlog"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/report"
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
	report.ExplainStory(a.Dir, &story)
	for _, line := range story.Lines() {
		fmt.Fprintf(a.Stdout, "%-12s%s\n", termsafe.Line(line.Name), termsafe.Line(review.Cut(line.Text, maxStoryText)))
	}
	return nil
}

// maxStoryText bounds a line of a story, in bytes: --json has all of it.
const maxStoryText = 16 << 10
