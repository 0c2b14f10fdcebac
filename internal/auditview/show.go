package auditview

import (
	"context"
	"errors"
	"fmt"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/auditlog"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/report"
	"github.com/ALRubinger/aileron/internal/review"
	"github.com/ALRubinger/aileron/internal/termsafe"
)

// Show prints what happened in the event whose id begins with prefix; with JSON, its row.
func (s *Source) Show(ctx context.Context, prefix string) error {
	l, err := s.Open(ctx)
	if err != nil {
		return err
	}
	if l == nil {
		return hint.New(audit.ErrNotFound, "there is no audit log yet; it begins with the first session")
	}
	defer l.Close()
	row, err := findRow(ctx, l, prefix)
	if err != nil {
		return err
	}
	if *s.JSON {
		return s.Console.PrintJSON(row)
	}
	return s.printStory(ctx, l, row)
}

// findRow returns the row whose id begins with prefix.
func findRow(ctx context.Context, l review.Log, prefix string) (audit.Row, error) {
	row, err := review.FindRow(ctx, l, prefix)
	switch {
	case errors.Is(err, audit.ErrNotFound):
		return row, hint.New(err, "see the ids with: aileron audit list --json")
	case err != nil && !review.IsAmbiguous(err):
		return row, auditlog.Hint(fmt.Errorf("show the audit event: %w", err))
	}
	return row, AmbiguousID(err)
}

// printStory prints what a row and those that belong to it tell.
func (s *Source) printStory(ctx context.Context, l review.Log, row audit.Row) error {
	story, err := review.Tell(ctx, l, row)
	if err != nil {
		return auditlog.Hint(fmt.Errorf("show the audit event: %w", err))
	}
	report.ExplainStory(s.Dir, &story)
	for _, line := range story.Lines() {
		text := termsafe.Line(review.Cut(line.Text, maxStoryText))
		fmt.Fprintf(s.Console.Stdout, "%-12s%s\n", termsafe.Line(line.Name), text)
	}
	return nil
}

// maxStoryText bounds a line of a story, in bytes: --json has all of it.
const maxStoryText = 16 << 10

// AmbiguousID returns the usage error for an [review.AmbiguousError], with the ids to choose from.
func AmbiguousID(err error) error {
	var several *review.AmbiguousError
	if !errors.As(err, &several) {
		return err
	}
	return hint.New(failure.Usagef("%v", several), "write more of one: %s", several.List())
}
