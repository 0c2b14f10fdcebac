package approval

import (
	"cmp"
	"context"
	"crypto/sha256"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ALRubinger/aileron/audit"
)

const (
	// MaxOpen is how many questions are pending at a time.
	MaxOpen = 20
	// Validity is how long an approval for once waits for its request, a denial for once holds, and a question stays
	// pending without a request that waits for it.
	Validity = 10 * time.Minute

	maxEnded = 64  // questions that have ended and are still known
	maxRules = 256 // of a session
	maxAsked = 140 // questions in ten minutes
)

// Options is what a queue is made of. Record is required.
type Options struct {
	Session, Agent string
	// Record commits the row of an event about a question. fields are added to it.
	Record func(ctx context.Context, event audit.Event, q *Question, fields map[string]any) error
	// Standing returns the rule for always about a subject, if there is one. With an error it may miss one: then no rule
	// approves. Nil: there is none.
	Standing func(Subject) (Rule, bool, error)
	// Keep keeps a rule for always, and Drop removes it again. Nil: no rule can be kept.
	Keep func(Rule) error
	Drop func(id string) error
	// Opened is called with each new question, and must not block. Nil: nothing is.
	Opened func(Question)
	// Now returns the time, for people. Nil: the clock's.
	Now func() time.Time
	// Elapsed returns the time by which what is approved ends, from any beginning. Nil: that since the machine was
	// started, with suspensions.
	Elapsed func() time.Duration
}

// Queue is the questions of one session. Its methods are safe for concurrent use.
type Queue struct {
	opts   Options
	asking sync.Mutex // held while a new question is recorded

	mu     sync.Mutex
	closed bool
	byKey  map[[sha256.Size]byte]*entry // that are pending, approved and not used, or denied for once
	byID   map[string]*entry            // those, and the last ones that have ended
	ended  []string                     // ids, the oldest first
	rules  []Rule                       // for the session
	asked  []time.Duration              // when the questions of the last ten minutes came
}

// entry is a question. All but the first two are guarded by Queue.mu.
type entry struct {
	key     [sha256.Size]byte
	decided chan struct{} // closed when the question is not pending any more

	q        Question
	deciding bool          // by a surface whose row is being recorded
	until    moment        // of the state
	gone     chan struct{} // of [Queue.Gone]; nil: none asked, or it is closed
}

// New returns a queue without questions.
func New(opts Options) *Queue {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Elapsed == nil {
		opts.Elapsed = sinceBoot
	}
	return &Queue{opts: opts, byKey: map[[sha256.Size]byte]*entry{}, byID: map[string]*entry{}}
}

// Ask returns the ticket of a request: for the question that equal ones have, or a new one, whose row is committed
// then. A decision that was made for more than one request, or that waits for this one, is on the ticket at once.
// The error is ErrFull, ErrClosed, or that of recording.
func (q *Queue) Ask(ctx context.Context, r Request) (*Ticket, error) {
	key := r.key()
	if t, err := q.join(key, &r); t != nil || err != nil {
		return t, err
	}
	q.asking.Lock()
	defer q.asking.Unlock()
	if t, err := q.join(key, &r); t != nil || err != nil { // another one was faster
		return t, err
	}
	q.mu.Lock()
	open, often := q.open(), q.isOften()
	q.mu.Unlock()
	if open >= MaxOpen || often {
		return nil, ErrFull
	}
	e := &entry{key: key, decided: make(chan struct{})}
	e.q = Question{ID: audit.NewID(), SessionID: q.opts.Session, Agent: q.opts.Agent, State: Pending,
		Requested: q.opts.Now().UTC(), Request: r.clone()}
	e.q.Digest = e.q.digest(e.q.ID, key)
	if err := q.opts.Record(ctx, audit.EventApprovalRequested, &e.q, nil); err != nil {
		return nil, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil, ErrClosed
	}
	q.byKey[key], q.byID[e.q.ID] = e, e
	e.q.Waiting++
	if q.opts.Opened != nil {
		q.opts.Opened(e.q)
	}
	return &Ticket{queue: q, entry: e, holds: true}, nil
}

// join returns a ticket for what is known of a request already, or nil.
func (q *Queue) join(key [sha256.Size]byte, r *Request) (*Ticket, error) {
	ruled := q.Ruled(r.Subject)
	q.sweep()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil, ErrClosed
	}
	if ruled != nil {
		return ruled, nil
	}
	e := q.byKey[key]
	if e == nil {
		return nil, nil //nolint:nilnil // nothing is known of it
	}
	e.q.Waiting++
	return &Ticket{queue: q, entry: e, holds: true}, nil
}

// rule returns the rule about a subject: of the session, or for always. One that denies comes first.
func (q *Queue) rule(s Subject) (found Rule, ok bool) {
	if !s.IsOperation() {
		return found, false
	}
	q.mu.Lock()
	for _, r := range q.rules {
		if r.Subject == s && (!ok || !r.Approve) {
			found, ok = r, true
		}
	}
	q.mu.Unlock()
	if q.opts.Standing == nil || ok && !found.Approve {
		return found, ok
	}
	r, kept, err := q.opts.Standing(s)
	switch {
	case kept && !r.Approve:
		return r, true
	case err != nil: // it may hide one that denies
		return Rule{}, false
	case kept && !ok:
		return r, true
	}
	return found, ok
}

// Ruled returns the ticket of a request whose subject is decided for the session or for always, nil if it is not.
func (q *Queue) Ruled(s Subject) *Ticket {
	rule, ok := q.rule(s)
	if !ok {
		return nil
	}
	state := Denied
	if rule.Approve {
		state = Approved
	}
	return &Ticket{queue: q, rule: rule.ID, subject: s, state: state}
}

// isOften notes a new question, and reports whether there were too many of late. q.mu is held.
func (q *Queue) isOften() bool {
	now := q.opts.Elapsed()
	q.asked = slices.DeleteFunc(q.asked, func(at time.Duration) bool { return now-at > Validity })
	if len(q.asked) >= maxAsked {
		return true
	}
	q.asked = append(q.asked, now)
	return false
}

// open returns how many questions are pending. q.mu is held.
func (q *Queue) open() (n int) {
	for _, e := range q.byKey {
		if e.q.State == Pending {
			n++
		}
	}
	return n
}

// recordAll bounds the wait for the log for all that has expired together.
const recordAll = 5 * time.Second

// sweep ends what has passed its time, and records it.
func (q *Queue) sweep() {
	var ended []Question
	now := q.opts.Elapsed()
	q.mu.Lock()
	for _, e := range q.byKey {
		busy := e.q.State == Pending && (e.q.Waiting > 0 || e.until == 0 || e.deciding)
		switch {
		case busy || !e.until.passed(now):
		case e.q.State == Denied: // it stays denied; the next such request is asked about anew
			q.end(e, Denied)
		default:
			q.end(e, Expired)
			ended = append(ended, e.q)
		}
	}
	q.mu.Unlock()
	q.recordExpired(ended, "")
}

func (q *Queue) recordExpired(ended []Question, cause string) {
	ctx, cancel := context.WithTimeout(context.Background(), recordAll)
	defer cancel()
	for i := range ended {
		fields := map[string]any{}
		if cause != "" {
			fields["cause"] = cause
		}
		if ended[i].Decided != nil {
			fields["was"] = string(Approved)
		}
		// The row is for the reader of the log: what has expired has, whether it is recorded or not.
		_ = q.opts.Record(ctx, audit.EventApprovalExpired, &ended[i], fields)
	}
}

// end takes an entry out of those that requests find. q.mu is held.
func (q *Queue) end(e *entry, state State) {
	delete(q.byKey, e.key)
	wasPending := e.q.State == Pending
	e.q.State = state
	e.forget()
	e.release()
	if wasPending {
		close(e.decided)
	}
	q.ended = append(q.ended, e.q.ID)
	if len(q.ended) > maxEnded {
		delete(q.byID, q.ended[0])
		q.ended = slices.Delete(q.ended, 0, 1)
	}
}

// forget drops what the sandbox sent, which is of no use once it is decided.
func (e *entry) forget() {
	e.q.Body, e.q.Inputs, e.q.Fields, e.q.Query, e.q.Preview = nil, []Value{}, nil, "", nil
}

// Run ends questions when their time has passed, until ctx ends.
func (q *Queue) Run(ctx context.Context) {
	tick := time.NewTicker(5 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			q.sweep()
		case <-ctx.Done():
			return
		}
	}
}

// Close releases all that wait. What was not decided has expired.
func (q *Queue) Close() {
	var ended []Question
	q.mu.Lock()
	q.closed = true
	for _, e := range q.byKey {
		if e.q.State != Denied {
			q.end(e, Expired)
			ended = append(ended, e.q)
		}
	}
	q.mu.Unlock()
	slices.SortFunc(ended, Older)
	q.recordExpired(ended, "session_ended")
}

// List returns the questions that are open or were a moment ago, the oldest first.
func (q *Queue) List() []Question {
	q.sweep()
	q.mu.Lock()
	defer q.mu.Unlock()
	all := make([]Question, 0, len(q.byID))
	for _, e := range q.byID {
		all = append(all, e.q)
	}
	slices.SortFunc(all, Older)
	return all
}

// Older compares two questions by when they were asked.
func Older(a, b Question) int {
	return cmp.Or(a.Requested.Compare(b.Requested), strings.Compare(a.ID, b.ID))
}

// Rules returns the decisions for this session.
func (q *Queue) Rules() []Rule {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.rules)
}

// State returns a question, which has what its request said only while it is pending.
func (q *Queue) State(id string) (Question, bool) {
	q.sweep()
	q.mu.Lock()
	defer q.mu.Unlock()
	e, ok := q.byID[id]
	if !ok {
		return Question{}, false
	}
	return e.q, true
}

// SetPreview keeps what the service says of a pending question. It is shown until the question is decided.
func (q *Queue) SetPreview(id string, p Preview) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if e, ok := q.byID[id]; ok && e.q.State == Pending {
		e.q.Preview = &p
	}
}

// Gone returns what is closed as soon as a question is decided, has ended, or has no request that waits for it.
func (q *Queue) Gone(id string) <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	e, ok := q.byID[id]
	if !ok || e.q.State != Pending || e.q.Waiting == 0 {
		gone := make(chan struct{})
		close(gone)
		return gone
	}
	if e.gone == nil {
		e.gone = make(chan struct{})
	}
	return e.gone
}

// release ends what is done on behalf of requests that wait. Queue.mu is held.
func (e *entry) release() {
	if e.gone != nil {
		close(e.gone)
		e.gone = nil
	}
}

// clone returns a copy of r that refers to nothing of the request's head.
func (r *Request) clone() Request {
	c := *r
	for _, s := range []*string{&c.Connector, &c.Hash, &c.Tool, &c.Operation, &c.Binding, &c.Version, &c.Method, &c.Scheme,
		&c.Host, &c.Path, &c.Query, &c.Covers, &c.BindingID, &c.HTTPVersion, &c.Source, &c.RequestID} {
		*s = strings.Clone(*s)
	}
	cloned := func(values []Value) []Value {
		all := make([]Value, 0, len(values))
		for _, v := range values {
			all = append(all, Value{strings.Clone(v.Name), v.In, strings.Clone(v.Value)})
		}
		return all
	}
	c.Inputs, c.Fields = cloned(r.Inputs), cloned(r.Fields)
	c.Body = slices.Clone(r.Body[:min(len(r.Body), MaxShown)])
	return c
}
