package audit

import "context"

// pending is a row on its way, and where its writer waits.
type pending struct {
	row     Row
	rows    []*Row       // several, in place of row
	result  chan outcome // nil: its writer leads
	barrier bool         // no row: its writer wants those before it committed
}

// outcome is sent to a waiting goroutine: the error of its row's commit, or that
// it is the leader now.
type outcome struct {
	err  error
	lead bool
}

// addTo appends p's rows to a group.
func (p *pending) addTo(group []*Row) []*Row {
	switch {
	case p.barrier:
		return group
	case p.rows != nil:
		return append(group, p.rows...)
	}
	return append(group, &p.row)
}

// await commits p, or waits for the leader to do it.
func (w *writer) await(ctx context.Context, p *pending, always bool) error {
	w.mu.Lock()
	if w.log == nil || w.closed && !always {
		w.mu.Unlock()
		return errClosed
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
		got = <-p.result // it is being committed, or leads
	}
	if !got.lead {
		return got.err
	}
	w.mu.Lock()
	return w.lead(p)
}

// withdraw removes p from the queue, unless a leader has taken it.
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
