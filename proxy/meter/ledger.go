package meter

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// The names that every request has something of.
const (
	Requests = "requests" // that were sent
	Bytes    = "bytes"    // of the bodies of requests and responses
)

// Limits are the most that may be used, by the names of meters.
type Limits map[string]int64

// Over is the error for a request that a limit forbids.
type Over struct {
	Name        string
	Used, Limit int64
	Wait        time.Duration // until the limit may allow more; 0: not in this session
	UnderWay    bool          // what is under way may use up the rest
}

func (o *Over) Error() string {
	if o.UnderWay {
		return fmt.Sprintf("requests under way may use up the budget of the session: %d of %d %s are used", o.Used, o.Limit,
			o.Name)
	}
	return fmt.Sprintf("the budget of the session is used up: %d of %d %s", o.Used, o.Limit, o.Name)
}

// Notice is a limit that is nearly reached, or has been.
type Notice struct {
	Name        string
	Used, Limit int64
	Percent     int // 80 or 100
}

// Options are what a [Ledger] is made of.
type Options struct {
	Limits Limits       // of the session
	Notice func(Notice) // called once for each limit and percentage, with no lock held; nil: none is called
}

// Ledger counts what a session uses, and has its limits. It is safe for concurrent use. A nil Ledger has no limits.
type Ledger struct {
	opts Options

	mu      sync.Mutex
	used    map[string]int64 // by the session
	open    map[string]int64 // requests under way that may use a meter
	largest map[string]int64 // that one request used
	told    map[Notice]bool  // without Used
}

// New returns a ledger in which nothing is used.
func New(opts Options) *Ledger {
	return &Ledger{opts: opts, used: map[string]int64{}, open: map[string]int64{}, largest: map[string]int64{},
		told: map[Notice]bool{}}
}

// Charge is a request that was admitted. A nil Charge is of no ledger.
type Charge struct {
	l     *Ledger
	names []string
}

// Admit counts a request that may use the meters of those names, unless a limit forbids it: then it returns the limit.
// Settle must be called on what it returns.
func (l *Ledger) Admit(names []string) (*Charge, *Over) {
	if l == nil {
		return nil, nil // nothing is counted
	}
	limits := l.opts.Limits
	if len(names) == 0 && limits[Requests] == 0 && limits[Bytes] == 0 {
		return nil, nil // no limit is for it
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	c := &Charge{l, append([]string{Requests, Bytes}, names...)}
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		if slices.Contains(c.names, name) {
			if over := l.over(name, limits[name]); over != nil {
				return nil, over
			}
		}
	}
	for _, name := range c.names {
		l.open[name]++
	}
	return c, nil
}

// over returns why a limit forbids one more request, or nil. While others are under way, no more are admitted than the
// rest would last for if each used what is expected of it.
func (l *Ledger) over(name string, limit int64) *Over {
	used := l.used[name]
	under := l.open[name] > 0 && Sum(used, l.open[name]*l.expected(name, limit)) >= limit
	if name == Requests {
		under = used+l.open[name] >= limit
	}
	if used < limit && !under {
		return nil
	}
	o := &Over{Name: name, Used: used, Limit: limit, UnderWay: used < limit}
	if o.UnderWay {
		o.Wait = time.Second
	}
	return o
}

// expected returns what a request under way is taken to use: as much as the largest so far, and at least a sixteenth of
// the limit. The largest alone is no bound: a first request may be tiny, so that many large ones come with it.
func (l *Ledger) expected(name string, limit int64) int64 { return max(l.largest[name], limit/16, 1) }

// Expected returns what a request that may use a meter is taken to use of it as long as nothing is known: as much as
// the largest so far, and at least a sixteenth of the limit. It is 0 for a nil Charge.
func (c *Charge) Expected(name string) int64 {
	if c == nil {
		return 0
	}
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	return c.l.expected(name, c.l.opts.Limits[name])
}

// Settle adds what the request has used, once: a later call does nothing.
func (c *Charge) Settle(used map[string]int64) {
	if c == nil || c.names == nil {
		return
	}
	l := c.l
	l.mu.Lock()
	for _, name := range c.names {
		l.open[name]--
	}
	c.names = nil
	for name, n := range used {
		l.used[name] = Sum(l.used[name], n)
		l.largest[name] = max(l.largest[name], n)
	}
	notices := l.reached()
	l.mu.Unlock()
	if l.opts.Notice == nil {
		return
	}
	for _, n := range notices {
		l.opts.Notice(n)
	}
}

// reached returns the limits that are at 80 or at 100 percent, of those without a notice so far.
func (l *Ledger) reached() (all []Notice) {
	for _, name := range slices.Sorted(maps.Keys(l.opts.Limits)) {
		used, limit := l.used[name], l.opts.Limits[name]
		n := Notice{Name: name, Limit: limit}
		switch {
		case used >= limit:
			n.Percent = 100
		case used >= limit-limit/5:
			n.Percent = 80
		default:
			continue
		}
		if !l.told[n] {
			l.told[n] = true
			n.Used = used
			all = append(all, n)
		}
	}
	return all
}
