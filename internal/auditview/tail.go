package auditview

import (
	"context"
	"errors"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/auditlog"
	"github.com/ALRubinger/aileron/internal/review"
)

// Tail prints the events that a filter selects, of the sessions of an agent unless it is empty, and each new one until
// ctx ends, including those of a log that does not exist yet. rows and verbose are those of List.
func (s *Source) Tail(ctx context.Context, agent string, filter audit.Filter, rows, verbose bool) error {
	// The log may be replaced while it is followed, so each look at it opens it.
	var opened review.Log
	closeOpened := func() {
		if opened != nil {
			_ = opened.Close()
		}
	}
	defer func() { closeOpened() }()
	p := s.newPrinter(func() (l review.Log, err error) {
		closeOpened()
		opened, err = s.Open(ctx)
		return opened, err
	}, verbose)
	f := &review.Fold{Rows: rows || *s.JSON || filter.Event == audit.EventProxyStarted, Flush: p.Flush}
	f.Show = func(r audit.Row, waiting bool) error {
		if agent != "" && p.Agents.Of(ctx, r) != agent {
			return nil
		}
		decision := ""
		if waiting {
			decision = review.Waiting
		}
		return p.print(ctx, r, decision)
	}
	if err := p.begin(ctx, agent, f, &filter); ctx.Err() != nil {
		return nil // interrupted
	} else if err != nil {
		return err
	}
	defer f.Watch(ctx)()
	return s.follow(ctx, filter, f.Add)
}

// begin takes what is under way. Of an agent it takes all events so far of its sessions, and changes the filter to
// those that follow of all sessions: others may start.
func (p *printer) begin(ctx context.Context, agent string, f *review.Fold, filter *audit.Filter) error {
	filter.NoIntents = !f.Rows
	l, err := p.s.Open(ctx)
	if err != nil || l == nil {
		return err
	}
	defer l.Close()
	var unfinished review.Unfinished
	if selected := *filter; !f.Rows {
		unfinished, err = review.FindUnfinished(ctx, l, &selected)
		p.note(unfinished)
	}
	for _, u := range unfinished.Ended {
		err = errors.Join(err, p.print(ctx, u.Row, review.DecisionOf(u)))
	}
	if err != nil {
		return auditlog.Hint(err)
	}
	newest, err := l.List(ctx, audit.Filter{Limit: 1, Newest: true})
	if err == nil && len(newest) == 1 && agent != "" {
		before := *filter
		before.ThroughSeq, filter.AfterSeq = newest[0].Seq, newest[0].Seq
		err = l.Each(ctx, before, f.Add)
	}
	for _, u := range unfinished.Waiting {
		err = errors.Join(err, f.Add(u.Row))
	}
	if agent != "" {
		filter.Sessions, filter.Limit, filter.Newest = nil, 0, false
	}
	return auditlog.Hint(err)
}
