package approval

import (
	"context"
	"time"
)

// Ticket is the place of one request in a queue. It is used by one goroutine.
type Ticket struct {
	queue *Queue
	entry *entry // nil: a rule has decided
	holds bool   // it counts among those that wait

	rule    string // the id of the rule
	subject Subject
	state   State // by the rule
}

// ID returns the id of the question, or of the rule that has decided.
func (t *Ticket) ID() string {
	if t.entry == nil {
		return t.rule
	}
	return t.entry.q.ID
}

// Wait waits for a decision until the deadline, or until ctx ends, and returns the state then.
func (t *Ticket) Wait(ctx context.Context, until time.Time) State {
	if t.entry == nil {
		return t.state
	}
	select {
	case <-t.entry.decided:
		return t.now()
	default:
	}
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-t.entry.decided:
	case <-timer.C:
	case <-ctx.Done():
	}
	return t.now()
}

// now returns the state of the question.
func (t *Ticket) now() State {
	q := t.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	return t.entry.q.State
}

// Use reports whether the request may pass, and uses the approval up if it is for once. Of equal requests that wait for
// one approval, one passes.
func (t *Ticket) Use() bool {
	q := t.queue
	if t.entry == nil { // the rule may have been revoked meanwhile
		rule, ok := q.rule(t.subject)
		return ok && rule.Approve && rule.ID == t.rule
	}
	standing, kept := q.rule(t.entry.q.Subject)
	q.mu.Lock()
	defer q.mu.Unlock()
	e := t.entry
	switch {
	case q.closed || e.q.State != Approved || e.q.Used:
		return false
	case q.byKey[e.key] != e: // a rule has been made of it, which may have been revoked
		return kept && standing.Approve
	case e.until.passed(q.opts.Elapsed()):
		return false // the sweep records it
	}
	e.q.Used = true
	q.end(e, Approved)
	return true
}

// Leave ends the wait. It must be called once. A question without any request that waits for it stays pending for
// [Validity]; that of a request whose body streams ends.
func (t *Ticket) Leave() {
	if !t.holds {
		return
	}
	t.holds = false
	q, e := t.queue, t.entry
	q.mu.Lock()
	e.q.Waiting--
	if e.q.Waiting == 0 {
		e.release()
	}
	var gone []Question
	if e.q.Waiting == 0 && !e.q.Used && q.byKey[e.key] == e {
		switch {
		case e.q.Streams && e.q.State != Denied:
			q.end(e, Expired)
			gone = append(gone, e.q)
		case e.q.State == Pending:
			e.until = in(q.opts.Elapsed(), Validity)
		}
	}
	q.mu.Unlock()
	q.recordExpired(gone, "request_ended")
}
