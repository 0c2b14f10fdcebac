package review

import (
	"context"

	"github.com/ALRubinger/aileron/audit"
)

// Log is where rows are asked for: an [audit.Log], or a database that rows of many hosts were shipped to. The methods
// are those of audit.Log.
type Log interface {
	Each(ctx context.Context, filter audit.Filter, f func(audit.Row) error) error
	List(ctx context.Context, filter audit.Filter) ([]audit.Row, error)
	Find(ctx context.Context, prefix string, limit int) ([]audit.Row, error)
	SessionStart(ctx context.Context, session string) (audit.Row, error)
	Groups(ctx context.Context, filter audit.Filter, by audit.GroupBy) ([]audit.Group, error)
	Summarize(ctx context.Context, filter audit.Filter) (audit.Summary, []audit.Group, error)
	Unfinished(ctx context.Context, filter audit.Filter) (audit.Unfinished, error)
	Verify(ctx context.Context) (audit.Report, error)
	Close() error
}
