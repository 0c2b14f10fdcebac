package audit

import (
	"context"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/review"
)

// rowPrinter prints events to stdout: as objects with --json, and otherwise as a table. The caller flushes.
type rowPrinter struct {
	a *cli.App
	*review.RowTable
}

// newRowPrinter returns a printer to stdout. open is for [review.Agents].
func newRowPrinter(a *cli.App, open func() (*audit.Log, error)) *rowPrinter {
	agents, width := review.Agents{Open: open}, a.OutputColumns()
	if width == 0 {
		return &rowPrinter{a, review.NewRowTable(a.Stdout, 0, false, agents)}
	}
	// https://no-color.org. The cells themselves are escaped.
	return &rowPrinter{a, review.NewRowTable(a.Child.Stdout, width, a.Getenv("NO_COLOR") == "", agents)}
}

// print prints one event, with a decision in place of its own, unless it is empty.
func (p *rowPrinter) print(ctx context.Context, r audit.Row, decision string) error {
	if p.a.JSON {
		return p.a.PrintJSON(r)
	}
	return p.Print(ctx, r, decision)
}
