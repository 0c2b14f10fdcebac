package meter

import (
	"fmt"
	"slices"
	"time"
)

// ofDay names an account of a day.
type ofDay struct {
	day string
	key Key
}

// late is a settlement that is still to be written.
type late struct {
	day    string
	shared []limit
	used   map[string]int64
}

// admitShared counts a request against the limits of the day.
func (c *Charge) admitShared() error {
	admitted := false
	err := c.ofDay(func(a Accounts) (bool, *Over) {
		c.l.mu.Lock()
		defer c.l.mu.Unlock()
		over := open(a, c.shared, func(k Key) int64 { return c.l.open[ofDay{c.day, k}] })
		if admitted = over == nil; admitted {
			c.l.count(c.day, c.shared, 1)
		}
		return admitted, over
	})
	if err != nil && admitted { // it could not be written
		c.l.mu.Lock()
		defer c.l.mu.Unlock()
		c.l.count(c.day, c.shared, -1)
	}
	return err
}

// ofDay calls f with the accounts of the day, if the request has limits there, and keeps what it changed if it returns
// true.
func (c *Charge) ofDay(f func(Accounts) (bool, *Over)) error {
	if len(c.shared) == 0 {
		return nil
	}
	var left time.Duration
	c.day, left = c.l.opts.Book.Day()
	var over *Over
	err := c.l.change(c.day, func(a Accounts) (changed bool) {
		changed, over = f(a)
		return changed
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

// Close writes what could not be written before. It is called before the book is closed.
func (l *Ledger) Close() {
	if l == nil {
		return
	}
	l.mu.Lock()
	var days []string
	for _, s := range l.late {
		days = append(days, s.day)
	}
	l.mu.Unlock()
	for _, day := range slices.Compact(slices.Sorted(slices.Values(days))) {
		if err := l.change(day, func(Accounts) bool { return false }); err != nil {
			l.warn(fmt.Errorf("what requests have used of the budget of %s could not be written: %w", day, err))
		}
	}
}

// change is Change of the book, with the settlements of the day that are still to be written before it.
func (l *Ledger) change(day string, f func(Accounts) bool) error {
	l.mu.Lock()
	var now, later []late
	for _, s := range l.late {
		if s.day == day {
			now = append(now, s)
		} else {
			later = append(later, s)
		}
	}
	l.late = later
	l.mu.Unlock()
	var notices []Notice
	err := l.opts.Book.Change(day, func(a Accounts) bool {
		for _, s := range now {
			notices = append(notices, settle(a, s.shared, s.used)...)
		}
		return f(a) || len(now) > 0
	})
	if err != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.late = append(l.late, now...)
		return err
	}
	l.tell(notices)
	return nil
}

// count adds to the session's own requests under way. l.mu must be held.
func (l *Ledger) count(day string, shared []limit, n int64) {
	for _, m := range shared {
		of := ofDay{day, m.key}
		if l.open[of] += n; l.open[of] <= 0 {
			delete(l.open, of)
		}
	}
}
