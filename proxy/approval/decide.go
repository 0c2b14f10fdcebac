package approval

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ALRubinger/aileron/audit"
)

// Decide decides a pending question. An approval counts when its row is committed, and not before; a denial counts in
// any case. Of two surfaces that decide at once, the first one does: the other gets ErrDecided.
func (q *Queue) Decide(ctx context.Context, id string, d Decision) (Question, error) {
	q.sweep()
	e, asked, err := q.claim(id, d)
	if err != nil {
		return asked, err
	}
	event := audit.EventApprovalDenied
	if d.Approve {
		event = audit.EventApprovalApproved
	}
	now := q.opts.Now()
	asked.Surface, asked.For = d.Surface, d.For
	rule := Rule{ID: id, Approve: d.Approve, For: d.For, Made: now.UTC(), Surface: d.Surface, Subject: asked.Subject,
		Version: asked.Version, Host: asked.Host, Method: asked.Method, Session: q.opts.Session}
	fields := map[string]any{"surface": d.Surface, "for": string(d.For),
		"waited_ms": now.Sub(asked.Requested).Milliseconds()}
	if d.Reason != "" {
		fields["decider_reason"] = d.Reason
	}
	if p := asked.Preview; p != nil && p.SHA256 != "" {
		fields["preview_sha256"] = p.SHA256
	}
	err = q.opts.Record(ctx, event, &asked, fields)
	if err != nil && d.Approve {
		q.unclaim(e)
		return asked, err
	}
	if d.For == Always { // never before its row
		rule.Session = ""
		if failed := q.keep(rule); failed != nil {
			_ = q.opts.Record(ctx, audit.EventApprovalDenied, &asked, map[string]any{"surface": d.Surface, "revoked": true})
			q.unclaim(e)
			return asked, failed
		}
	}
	return q.settle(e, rule, now), err
}

// claim makes the caller the one that decides a question.
func (q *Queue) claim(id string, d Decision) (*entry, Question, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	e, ok := q.byID[id]
	switch {
	case q.closed:
		return nil, Question{}, ErrClosed
	case !ok:
		return nil, Question{}, ErrUnknown
	case e.q.State != Pending || e.deciding:
		return nil, e.q, ErrDecided
	case d.Shown != "" && d.Shown != e.q.Digest:
		return nil, e.q, ErrShown
	case d.For != Once && !e.q.IsOperation():
		return nil, e.q, ErrNoObject
	case d.For == Always && e.q.Budget != "":
		return nil, e.q, ErrBudget
	case d.For == Always && d.Approve && e.q.AnyPath:
		return nil, e.q, ErrAnyPath
	case d.For == Session && len(q.rules) >= maxRules:
		return nil, e.q, fmt.Errorf("there are %d decisions for this session already: revoke one", maxRules)
	}
	e.deciding = true
	return e, e.q, nil
}

// unclaim leaves a question to others.
func (q *Queue) unclaim(e *entry) {
	q.mu.Lock()
	defer q.mu.Unlock()
	e.deciding = false
}

func (q *Queue) keep(r Rule) error {
	if q.opts.Keep == nil {
		return fmt.Errorf("%w here", ErrNoObject)
	}
	return q.opts.Keep(r)
}

// settle puts a decision in force, and wakes those that wait for it.
func (q *Queue) settle(e *entry, r Rule, now time.Time) Question {
	q.mu.Lock()
	defer q.mu.Unlock()
	e.deciding = false
	if e.q.State != Pending { // the session has ended meanwhile
		return e.q
	}
	at, state := now.UTC(), Denied
	if r.Approve {
		state = Approved
	}
	e.q.Decided, e.q.Surface, e.q.For, e.until = &at, r.Surface, r.For, in(q.opts.Elapsed(), Validity)
	shown := e.q
	shown.State = state
	if r.For == Session {
		q.rules = append(q.rules, r)
	}
	if r.For != Once { // the rule decides from now on
		q.end(e, state)
		return shown
	}
	e.q.State = state
	e.forget()
	e.release()
	close(e.decided)
	return shown
}

// Revoke takes back an approval that has not been used, or a decision for the session: the next request is asked about
// anew. The error is ErrUnknown if there is none of that id.
func (q *Queue) Revoke(ctx context.Context, id, surface string) error {
	q.mu.Lock()
	asked, found := Question{}, false
	if i := slices.IndexFunc(q.rules, func(r Rule) bool { return r.ID == id }); i >= 0 {
		r := q.rules[i]
		q.rules = slices.Delete(q.rules, i, i+1)
		asked, found = Question{ID: id, SessionID: q.opts.Session, Requested: r.Made,
			Request: Request{Subject: r.Subject, Version: r.Version, Method: r.Method, Host: r.Host}}, true
	}
	if e, ok := q.byID[id]; ok && q.byKey[e.key] == e && e.q.State != Pending {
		q.end(e, Denied)
		asked, found = e.q, true
	}
	q.mu.Unlock()
	if !found {
		return ErrUnknown
	}
	return q.opts.Record(ctx, audit.EventApprovalDenied, &asked, map[string]any{"surface": surface, "revoked": true})
}
