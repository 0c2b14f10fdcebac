package meter

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"
)

// The names that every request has something of.
const (
	Requests = "requests" // that were sent
	Bytes    = "bytes"    // of the bodies of requests and responses
)

// Options are what a [Ledger] is made of.
type Options struct {
	Limits   Limits            // of the session
	Day      Limits            // of a day, for all sessions of the home
	Bindings map[string]Limits // of a day, by the name of the credential that requests carry
	Book     Book              // keeps what is used in a day; it is required if Day or Bindings has a limit

	Notice func(Notice) // called once for each limit and percentage, with no lock held; nil: none is called
	Warn   func(error)  // called when what a request has used could not be kept; nil: none is called
}

// Ledger counts what a session uses, and has its limits. It is safe for concurrent use. A nil Ledger has no limits.
type Ledger struct {
	opts Options

	mu      sync.Mutex
	session Accounts
	lifted  map[lifted]int64 // by how much
}

// lifted is a limit that was raised for the session.
type lifted struct {
	budget string
	key    Key
}

// New returns a ledger of a session that has used nothing.
func New(opts Options) *Ledger {
	return &Ledger{opts: opts, session: Accounts{}, lifted: map[lifted]int64{}}
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
	beyond bool // the request may exceed it
}

// Lift raises a limit that forbade a request for this session, by its size in [Options], unless it was raised since.
// binding is that of the request.
func (l *Ledger) Lift(over *Over, binding string) {
	limits := l.opts.Limits
	switch over.Budget {
	case OfDay:
		limits = l.opts.Day
	case OfBinding:
		limits = l.opts.Bindings[binding]
	}
	if over.Budget != OfBinding {
		binding = ""
	}
	which, size := lifted{over.Budget, Key{binding, over.Name}}, limits[over.Name]
	l.mu.Lock()
	defer l.mu.Unlock()
	if Sum(size, l.lifted[which]) == over.Limit {
		l.lifted[which] = Sum(l.lifted[which], size)
	}
}

// Admit counts a request that may use the meters of those names, and carries the credential of a binding, "" if none,
// unless a limit forbids it that is not one of beyond. Settle must be called on what it returns. The error is an
// [*Over], or that of the book.
func (l *Ledger) Admit(names []string, binding string, beyond ...*Over) (*Charge, error) {
	if l == nil {
		return nil, nil //nolint:nilnil // nothing is counted
	}
	session, shared := limitsOf(nil, l.opts.Limits, names, OfSession, ""), limitsOf(nil, l.opts.Day, names, OfDay, "")
	if binding != "" {
		shared = limitsOf(shared, l.opts.Bindings[binding], names, OfBinding, binding)
	}
	if len(session)+len(shared) == 0 {
		return nil, nil //nolint:nilnil // no limit is for it
	}
	c := &Charge{l: l, session: session, shared: shared}
	l.mu.Lock()
	for _, limits := range [][]limit{session, shared} {
		for i := range limits {
			m := &limits[i]
			m.most = Sum(m.most, l.lifted[lifted{m.budget, m.key}])
			m.beyond = slices.ContainsFunc(beyond, func(o *Over) bool { return o.Budget == m.budget && o.Name == m.key.Meter })
		}
	}
	over := open(l.session, c.session)
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

// limitsOf adds the limits that are for a request with meters of those names, by name.
func limitsOf(all []limit, limits Limits, names []string, budget, binding string) []limit {
	if len(limits) == 0 {
		return all
	}
	from := len(all)
	all = slices.Grow(all, len(limits))
	for name, most := range limits {
		if name == Requests || name == Bytes || slices.Contains(names, name) {
			all = append(all, limit{Key{binding, name}, most, budget, false})
		}
	}
	slices.SortFunc(all[from:], func(a, b limit) int { return cmp.Compare(a.key.Meter, b.key.Meter) })
	return all
}

// open counts a request as under way, unless a limit forbids it.
func open(a Accounts, limits []limit) *Over {
	for _, m := range limits {
		if m.beyond {
			continue
		}
		if over := a.Of(m.key).over(m.key.Meter, m.most); over != nil {
			over.Budget = m.budget
			return over
		}
	}
	for _, m := range limits {
		a.Of(m.key).Open++
	}
	return nil
}

// admitShared counts a request against the limits of the day.
func (c *Charge) admitShared() error {
	if len(c.shared) == 0 {
		return nil
	}
	var left time.Duration
	c.day, left = c.l.opts.Book.Day()
	var over *Over
	err := c.l.opts.Book.Change(c.day, func(a Accounts) bool {
		over = open(a, c.shared)
		return over == nil
	})
	switch {
	case err != nil:
		return fmt.Errorf("the budget of the day cannot be read: %w", err)
	case over == nil:
		return nil
	}
	if !over.UnderWay {
		over.Wait = left
	}
	return over
}

// Expected returns what a request that may use a meter is taken to use of it as long as nothing is known: as much as
// the largest so far in the session, and at least a sixteenth of the least limit, or what a model's longest response
// has. It is 0 for a nil Charge.
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
		a := c.l.session[Key{Meter: name}]
		if a == nil {
			a = &Account{}
		}
		if n := a.expected(name, m.most); most == 0 || n < most {
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
	if len(shared) > 0 {
		var more []Notice
		err := l.opts.Book.Change(c.day, func(a Accounts) bool {
			more = settle(a, shared, used)
			return true
		})
		if err != nil && l.opts.Warn != nil {
			l.opts.Warn(fmt.Errorf("what a request has used of the day's budget could not be kept: %w", err))
		}
		notices = append(notices, more...)
	}
	if l.opts.Notice == nil {
		return
	}
	for _, n := range notices {
		l.opts.Notice(n)
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
