package auditview

import (
	"context"
	"errors"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/report"
	"github.com/ALRubinger/aileron/internal/review"
)

// printer prints events to stdout: as objects with JSON, and otherwise as a table. The caller flushes.
type printer struct {
	s *Source
	*review.RowTable
}

// newPrinter returns a printer. open is for [review.Agents].
func (s *Source) newPrinter(open func() (review.Log, error), explain bool) *printer {
	con := s.Console
	agents, width := review.Agents{Open: open}, con.OutputColumns()
	p := &printer{s, review.NewRowTable(con.Stdout, 0, false, agents)}
	if width > 0 { // https://no-color.org. The cells themselves are escaped.
		p.RowTable = review.NewRowTable(con.Child.Stdout, width, s.Dir.Getenv("NO_COLOR") == "", agents)
	}
	if explain {
		p.Explain = report.Explainer(s.Dir)
	}
	return p
}

// print prints one event, with a decision in place of its own, unless it is empty.
func (p *printer) print(ctx context.Context, r audit.Row, decision string) error {
	if *p.s.JSON {
		return p.s.Console.PrintJSON(r)
	}
	return p.Print(ctx, r, decision)
}

// note prints how many requests were left out.
func (p *printer) note(u review.Unfinished) {
	if u.Note != "" {
		p.s.Console.Infof("%s", u.Note)
	}
}

// List prints the events that a filter selects. rows prints every row; otherwise a request is one line, and those under
// way follow the others. They do not count against filter.Limit: an agent that leaves requests open must not hide
// others. verbose has why a request was denied.
func (s *Source) List(ctx context.Context, filter audit.Filter, rows, verbose bool) error {
	return s.Read(ctx, func(l review.Log) error {
		p := s.newPrinter(func() (review.Log, error) { return l, nil }, verbose)
		listed, err := p.list(ctx, l, filter, rows || *s.JSON)
		if err == nil && listed == 0 {
			s.NoMatch(ctx, l, filter)
		}
		return err
	})
}

// list prints the events that filter selects, and returns how many they are.
func (p *printer) list(ctx context.Context, l review.Log, filter audit.Filter, rows bool) (listed int, err error) {
	var unfinished review.Unfinished
	if !rows && filter.Event != audit.EventProxyStarted {
		if unfinished, err = review.FindUnfinished(ctx, l, &filter); err != nil {
			return 0, err
		}
		filter.NoIntents = true
	}
	err = unfinished.Each(ctx, l, filter, func(r audit.Row, decision string) error {
		listed++
		return p.print(ctx, r, decision)
	})
	err = errors.Join(err, p.Flush())
	p.note(unfinished)
	return listed, err
}

// NoMatch prints that no event is selected, with what was probably meant by a value that no event has.
func (s *Source) NoMatch(ctx context.Context, l review.Log, filter audit.Filter) {
	s.Console.Infof("aileron: no matching events%s", review.Misspelled(ctx, l, filter))
}
