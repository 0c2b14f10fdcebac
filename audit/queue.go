package audit

import (
	"context"

	"github.com/ALRubinger/aileron/audit/internal/journal"
	"github.com/ALRubinger/aileron/audit/internal/table"
)

// pending is a row that is to be committed, and the channel on which its goroutine waits.
type pending struct {
	row     Row
	several bool // rows are committed instead of row
	rows    []*Row
	with    table.Extra  // several only
	result  chan outcome // nil: its goroutine is the leader
	barrier bool         // no row: its goroutine waits for the rows before it
}

// outcome is sent to a waiting goroutine: the error of the commit of its row, or that it is the leader now.
type outcome struct {
	err  error
	lead bool
}

// addTo appends the rows of p to a group.
func (p *pending) addTo(group []*Row) []*Row {
	switch {
	case p.barrier:
		return group
	case p.several:
		return append(group, p.rows...)
	}
	return append(group, &p.row)
}

// await commits p as the leader, or waits until another leader has done so. It accepts p after close only if always
// is set.
func (w *writer) await(ctx context.Context, p *pending, always bool) error {
	w.mu.Lock()
	if w.log == nil || w.closed && !always {
		w.mu.Unlock()
		return journal.ErrClosed
	}
	if !w.leading {
		w.leading = true
		return w.lead(p)
	}
	p.result = make(chan outcome, 1)
	w.waiting = append(w.waiting, p)
	w.mu.Unlock()
	var got outcome
	select {
	case got = <-p.result:
	case <-ctx.Done():
		if w.withdraw(p) {
			return ctx.Err()
		}
		got = <-p.result // it is being committed, or is the leader now
	}
	if !got.lead {
		return got.err
	}
	w.mu.Lock()
	return w.lead(p)
}

// withdraw removes p from the queue, and reports whether it was there: a leader may have taken it.
func (w *writer) withdraw(p *pending) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, other := range w.waiting {
		if other == p {
			w.waiting = append(w.waiting[:i], w.waiting[i+1:]...)
			return true
		}
	}
	return false
}
