package meter

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// The names that every request has something of.
const (
	Requests = "requests" // that were sent
	Bytes    = "bytes"    // of the bodies of requests and responses
)

// OutputTokens is the meter of connectors of which it is known how much one response has at most.
const OutputTokens = "output_tokens"

// Options are what a [Ledger] is made of.
type Options struct {
	Limits   Limits            // of the session
	Day      Limits            // of a day, for all sessions of the home
	Bindings map[string]Limits // of a day, by the name of the credential that requests carry
	Book     Book              // keeps what is used in a day; it is required if Day or Bindings has a limit

	Notice func(Notice) // called once for each limit and percentage, with no lock held; nil: none is called
	Warn   func(error)  // called when what a request has used could not be written; nil: none is called
}

// Ledger counts what a session uses, and has its limits. It is safe for concurrent use. A nil Ledger has no limits.
type Ledger struct {
	opts Options

	mu      sync.Mutex
	session Accounts
	lifted  map[lifted]string // by the id of which decision
	open    map[ofDay]int64   // its own requests under way, of the accounts of days
	late    []late            // settlements that could not be written; no more than there were requests under way at once
}

// lifted is a limit that was raised for the session, by its size in [Options].
type lifted struct {
	budget string
	key    Key
	from   int64
}

// New returns a ledger of a session that has used nothing.
func New(opts Options) *Ledger {
	return &Ledger{opts: opts, session: Accounts{}, lifted: map[lifted]string{}, open: map[ofDay]int64{}}
}

// Charge is a request that was admitted. A nil Charge is of no ledger.
type Charge struct {
	l       *Ledger
	session []limit // that it counts against; of a settled one nil
	day     string
	shared  []limit
}

// limit is one that a request counts against.
type limit struct {
	key    Key
	most   int64
	budget string
	beyond bool  // the request may exceed it
	expect int64 // what a request was taken to use when this one was admitted
}

// Lift raises a limit that forbade a request for this session, by its size in [Options], unless it was raised since.
// binding is that of the request, and by the id of the decision, for [Ledger.Lower].
func (l *Ledger) Lift(over *Over, binding, by string) {
	if over.Budget != OfBinding {
		binding = ""
	}
	which := lifted{over.Budget, Key{binding, over.Name}, over.Limit}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lifted[which] == "" {
		l.lifted[which] = by
	}
}

// Lower takes a decision back by which a limit was raised. What was raised from there on counts again once it is raised
// to there.
func (l *Ledger) Lower(by string) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.lifted, func(_ lifted, id string) bool { return id == by })
}

// raised returns a limit as it is for this session. l.mu must be held.
func (l *Ledger) raised(m *limit) int64 {
	most := m.most
	for l.lifted[lifted{m.budget, m.key, most}] != "" {
		most = Sum(most, m.most)
	}
	return most
}

// Admit counts a request that may use the meters of those names, and carries the credential of a binding, "" if none,
// unless a limit forbids it that is not one of beyond. Settle must be called on what it returns. The error is an
// [*Over], or that of the book.
func (l *Ledger) Admit(names []string, binding string, beyond ...*Over) (*Charge, error) {
	c := l.charge(names, binding, beyond)
	if c == nil {
		return nil, nil //nolint:nilnil // no limit is for it
	}
	l.mu.Lock()
	over := open(l.session, c.session, func(k Key) int64 { return l.session.Of(k).Open })
	l.mu.Unlock()
	if over != nil {
		return nil, over
	}
	if err := c.admitShared(); err != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, m := range c.session {
			l.session.Of(m.key).Open--
		}
		return nil, err
	}
	return c, nil
}

// Check returns the error of Admit for a request that a limit forbids whatever is under way, and counts nothing. It is
// for what a request waits for before it is admitted: what waits takes nothing from others.
func (l *Ledger) Check(names []string, binding string, beyond ...*Over) error {
	c := l.charge(names, binding, beyond)
	if c == nil {
		return nil
	}
	l.mu.Lock()
	over := forbids(c.session, func(m limit) *Over { return l.session.Of(m.key).usedUp(m.key.Meter, m.most) })
	l.mu.Unlock()
	if over != nil {
		return over
	}
	return c.ofDay(func(a Accounts) (bool, *Over) {
		return false, forbids(c.shared, func(m limit) *Over { return a.Of(m.key).usedUp(m.key.Meter, m.most) })
	})
}

// charge returns a request with the limits that are for it, or nil if there are none.
func (l *Ledger) charge(names []string, binding string, beyond []*Over) *Charge {
	if l == nil {
		return nil
	}
	session, shared := limitsOf(nil, l.opts.Limits, names, OfSession, ""), limitsOf(nil, l.opts.Day, names, OfDay, "")
	if binding != "" {
		shared = limitsOf(shared, l.opts.Bindings[binding], names, OfBinding, binding)
	}
	if len(session)+len(shared) == 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, limits := range [][]limit{session, shared} {
		for i := range limits {
			m := &limits[i]
			m.most = l.raised(m)
			m.beyond = slices.ContainsFunc(beyond, func(o *Over) bool { return o.Budget == m.budget && o.Name == m.key.Meter })
		}
	}
	return &Charge{l: l, session: session, shared: shared}
}

// limitsOf adds the limits that are for a request with meters of those names, by name.
func limitsOf(all []limit, limits Limits, names []string, budget, binding string) []limit {
	if len(limits) == 0 {
		return all
	}
	from := len(all)
	all = slices.Grow(all, len(limits))
	for name, most := range limits {
		if name == Requests || name == Bytes || slices.Contains(names, name) {
			all = append(all, limit{Key{binding, name}, most, budget, false, 0})
		}
	}
	slices.SortFunc(all[from:], func(a, b limit) int { return cmp.Compare(a.key.Meter, b.key.Meter) })
	return all
}

// forbids returns why the first of limits that does forbids a request which may not exceed it.
func forbids(limits []limit, why func(limit) *Over) *Over {
	for _, m := range limits {
		if m.beyond {
			continue
		}
		if over := why(m); over != nil {
			over.Budget = m.budget
			return over
		}
	}
	return nil
}

// open counts a request as under way, unless a limit forbids it. own is how many the session has under way.
func open(a Accounts, limits []limit, own func(Key) int64) *Over {
	over := forbids(limits, func(m limit) *Over { return a.Of(m.key).over(m.key.Meter, m.most, own(m.key)) })
	if over != nil {
		return over
	}
	for i, m := range limits {
		account := a.Of(m.key)
		limits[i].expect = account.expected(m.key.Meter, m.most)
		account.Open++
	}
	return nil
}

// Expected returns what a request that may use a meter is taken to use of it as long as nothing is known: by that of
// its limits for which it is least, as much as the largest so far, and at least a sixteenth of the limit, or what one
// request uses at most. It is 0 for a nil Charge.
func (c *Charge) Expected(name string) (most int64) {
	if c == nil {
		return 0
	}
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	for _, m := range slices.Concat(c.session, c.shared) {
		if m.key.Meter != name {
			continue
		}
		n := m.expect // of a day, as it was
		if m.budget == OfSession {
			n = c.l.session.Of(m.key).expected(name, m.most)
		}
		if most == 0 || n < most {
			most = n
		}
	}
	return most
}

// Settle adds what the request has used, once: a later call does nothing.
func (c *Charge) Settle(used map[string]int64) {
	if c == nil || c.session == nil && c.shared == nil {
		return
	}
	l, session, shared := c.l, c.session, c.shared
	c.session, c.shared = nil, nil
	l.mu.Lock()
	notices := settle(l.session, session, used)
	l.mu.Unlock()
	l.tell(notices)
	if len(shared) == 0 {
		return
	}
	l.mu.Lock()
	l.count(c.day, shared, -1)
	l.late = append(l.late, late{c.day, shared, used})
	l.mu.Unlock()
	if err := l.change(c.day, func(Accounts) bool { return false }); err != nil {
		l.warn(fmt.Errorf("what a request has used of the day's budget is not written yet: %w", err))
	}
}

// settle adds what a request used to the accounts of limits, and returns those that are nearly reached, or are, without
// a notice so far.
func settle(a Accounts, limits []limit, used map[string]int64) (notices []Notice) {
	for _, m := range limits {
		if n := a.Of(m.key).settle(m.key.Meter, used[m.key.Meter], m.most); n != nil {
			n.Budget, n.Binding = m.budget, m.key.Binding
			notices = append(notices, *n)
		}
	}
	return notices
}

func (l *Ledger) tell(notices []Notice) {
	if l.opts.Notice == nil {
		return
	}
	for _, n := range notices {
		l.opts.Notice(n)
	}
}

func (l *Ledger) warn(err error) {
	if l.opts.Warn != nil {
		l.opts.Warn(err)
	}
}
