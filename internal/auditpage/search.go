package auditpage

import (
	"context"
	"net/http"

	"github.com/ALRubinger/aileron/audit"
)

// maxSearches is the number of searches that run at once: each takes all of a core.
const maxSearches = 2

// search is a search of the rows that a request selects.
type search struct {
	log    *openLog
	filter audit.Filter
	newest int64  // row of the log when the search began
	end    func() // must be called once
}

// search waits for its turn and opens the log.
func (p *Page) search(r *http.Request) (*search, error) {
	endTurn, err := p.waitTurn(r.Context())
	if err != nil {
		return nil, err
	}
	l, filter, done, err := p.selected(r)
	if err != nil {
		endTurn()
		return nil, err
	}
	s := &search{log: l, filter: filter, end: func() { done(); endTurn() }}
	if _, s.newest, err = ends(r.Context(), l.Log); err != nil {
		s.end()
		return nil, err
	}
	return s, nil
}

// waitTurn waits until the log may be searched. The function that it returns lets the next search begin.
func (p *Page) waitTurn(ctx context.Context) (end func(), err error) {
	select {
	case p.turns <- struct{}{}:
		return func() { <-p.turns }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Windows of a search, in rows: small at first, so that a page has something to show, and bounded, because an open
// reading holds back the checkpoints of the log.
const (
	firstWindow = 1 << 12
	lastWindow  = 1 << 17
)

// eachWindow calls f with the filter of one range of numbers after the other, the newest first, until all rows of the
// search are covered.
func (s *search) eachWindow(f func(audit.Filter) error) error {
	through := s.newest
	if s.filter.ThroughSeq > 0 {
		through = min(through, s.filter.ThroughSeq)
	}
	for size := int64(firstWindow); through > s.filter.AfterSeq; size = min(4*size, lastWindow) {
		part := s.filter
		part.ThroughSeq, part.AfterSeq = through, max(s.filter.AfterSeq, through-size)
		if err := f(part); err != nil {
			return err
		}
		through = part.AfterSeq
	}
	return nil
}
