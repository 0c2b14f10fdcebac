package audit

import (
	"context"
	"runtime"
	"slices"

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
	i := slices.Index(w.waiting, p)
	if i < 0 {
		return false
	}
	w.waiting = slices.Delete(w.waiting, i, i+1)
	return true
}

// lead folds the journal and commits deferred rows, p, and the rows that wait, in this order: an outcome is deferred
// before the next intent of its connection is appended. It makes another goroutine the leader before it returns. w.mu
// is locked when it is called.
func (w *writer) lead(p *pending) error {
	// Let other goroutines run that may have a row for this commit. On an idle machine this costs nothing; on a busy one
	// it makes large groups.
	for range 4 {
		before := len(w.waiting) + len(w.deferred)
		w.mu.Unlock()
		runtime.Gosched()
		w.mu.Lock()
		if now := len(w.waiting) + len(w.deferred); now == before || now >= maxGroup {
			break
		}
	}
	most := min(len(w.waiting), maxGroup)
	waits := append([]*pending(nil), w.waiting[:most]...)
	w.waiting = append(w.waiting[:0], w.waiting[most:]...)
	deferred := len(w.deferred)
	w.group = append(w.group[:0], w.deferred...)
	counted := w.refused
	if counted > 0 {
		w.group = append(w.group, w.refusedRow(counted))
	}
	w.mu.Unlock()

	w.with = p.with
	w.group = p.addTo(w.group)
	flush := p.barrier
	for _, q := range waits {
		flush = flush || q.barrier
		w.group = q.addTo(w.group)
		w.with.Add(q.with)
	}
	folded, err := w.fold()
	switch {
	case err != nil:
		deferred = 0
	case len(w.group) > 0 || !w.with.IsEmpty() || w.log.broken != nil:
		err = w.log.commitOrFail(w.group, w.with)
		deferred, err = w.acknowledge(err, deferred, counted)
	case flush && w.log.head.Behind:
		err = w.log.commitOrFail(nil, table.Extra{})
	case folded && w.outage != nil:
		w.easeOutage(0)
	default:
		w.endOutage(retryEvery)
	}
	if flush {
		w.log.head.Flush()
	}
	clear(w.group)

	w.mu.Lock()
	w.deferred = append(w.deferred[:0], w.deferred[deferred:]...)
	clear(w.deferred[len(w.deferred):cap(w.deferred)])
	if len(w.waiting) > 0 {
		next := w.waiting[0]
		w.waiting = append(w.waiting[:0], w.waiting[1:]...)
		next.result <- outcome{lead: true}
	} else {
		w.leading = false
		w.resume()
	}
	w.mu.Unlock()
	for _, q := range waits {
		q.result <- outcome{err: err}
	}
	return err
}
