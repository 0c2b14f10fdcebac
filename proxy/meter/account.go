package meter

import (
	"fmt"
	"time"
)

// Limits are the most that may be used, by the names of meters.
type Limits map[string]int64

// Key names an account: the requests whose use it counts, and the meter.
type Key struct {
	Binding string // whose requests count; "": all
	Meter   string
}

// Account is what is used of a meter.
type Account struct {
	Used    int64 // by requests that have ended
	Largest int64 // that one request used
	Open    int64 // requests under way that may use it
	Told    int64 // the largest use of which the owner was told: 80 or 100 percent of a limit; 0: of none
}

// Accounts are those of one session, or of one day. A missing one has counted nothing.
type Accounts map[Key]*Account

// Of returns the account of a key, which is made if it is missing.
func (a Accounts) Of(k Key) *Account {
	if a[k] == nil {
		a[k] = &Account{}
	}
	return a[k]
}

// Book keeps the accounts that the sessions of a home share, day by day. It is safe for concurrent use, also by several
// processes.
type Book interface {
	// Day returns the day that it is, and how much is left of it.
	Day() (day string, left time.Duration)
	// Change calls f with the accounts of a day while no other session has them, and keeps what it changed if it returns
	// true. Open is the sum of all sessions: what f adds to it is this session's.
	Change(day string, f func(Accounts) bool) error
}

// The budgets that a request counts against.
const (
	OfSession = "session"
	OfDay     = "day"     // of all sessions of a home
	OfBinding = "binding" // of those that carry one credential, in a day
)

// Over is the error for a request that a limit forbids.
type Over struct {
	Budget      string // OfSession, OfDay or OfBinding
	Name        string
	Used, Limit int64
	Wait        time.Duration // until the limit may allow more; 0: not in this session
	UnderWay    bool          // what is under way may use up the rest
}

func (o *Over) Error() string {
	whose := "the session"
	switch o.Budget {
	case OfDay:
		whose = "the day"
	case OfBinding:
		whose = "the credential for the day"
	}
	if o.UnderWay {
		return fmt.Sprintf("requests under way may use up the budget of %s: %d of %d %s are used", whose, o.Used, o.Limit,
			o.Name)
	}
	return fmt.Sprintf("the budget of %s is used up: %d of %d %s", whose, o.Used, o.Limit, o.Name)
}

// usedUp returns why a limit forbids requests whatever is under way, or nil.
func (a *Account) usedUp(name string, limit int64) *Over {
	if a.Used < limit {
		return nil
	}
	return &Over{Name: name, Used: a.Used, Limit: limit}
}

// over returns why a limit forbids one more request, or nil. While others are under way, no more are admitted than the
// rest would last for if each used what is expected of it. A session that has none of its own under way gets one all
// the same, so that another, whose requests never end, cannot keep it from the rest.
func (a *Account) over(name string, limit, own int64) *Over {
	under := own > 0 && Sum(a.Used, a.Open*a.expected(name, limit)) >= limit
	if name == Requests {
		under = a.Used+a.Open >= limit
	}
	if a.Used < limit && !under {
		return nil
	}
	o := &Over{Name: name, Used: a.Used, Limit: limit, UnderWay: a.Used < limit}
	if o.UnderWay {
		o.Wait = time.Second
	}
	return o
}

// What one request uses at most: of a large limit, a sixteenth is more than that.
const (
	maxOutput  = 1 << 17   // of a model's longest response
	maxOfMeter = 2_000_000 // of any other meter: the largest context of a model is half of that
)

// expected returns what a request under way is taken to use: as much as the largest so far, and at least a sixteenth of
// the limit, or what one request uses at most. The largest alone is no bound: a first request may be tiny, so that many
// large ones come with it.
func (a *Account) expected(name string, limit int64) int64 {
	least := limit / 16
	switch name {
	case Bytes:
	case OutputTokens:
		least = min(least, maxOutput)
	default:
		least = min(least, maxOfMeter)
	}
	return max(a.Largest, least, 1)
}

// settle adds what a request used, which is under way no more, and returns the limit if it is at 80 or at 100 percent
// now, and there was no notice of as much so far, of this limit or of a larger one that another session has.
func (a *Account) settle(name string, used, limit int64) *Notice {
	a.Open--
	a.Used, a.Largest = Sum(a.Used, used), max(a.Largest, used)
	reached, percent := limit, 100
	if a.Used < limit {
		reached, percent = limit-limit/5, 80
	}
	if a.Used < reached || reached <= a.Told {
		return nil
	}
	a.Told = reached
	return &Notice{Name: name, Used: a.Used, Limit: limit, Percent: percent}
}

// Notice is a limit that is nearly reached, or has been.
type Notice struct {
	Budget      string // as in [Over]
	Binding     string // whose; "": none
	Name        string
	Used, Limit int64
	Percent     int // 80 or 100
}
