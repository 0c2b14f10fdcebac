package audit

import (
	"errors"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// lingering is how long a row that nobody waits for may wait for company. A
// commit costs more than the rows in it.
const lingering = 2 * time.Millisecond

// maxHeld bounds the rows that wait for a database that can be written again.
// It is not reached: without a database nothing is admitted that ends in rows.
const maxHeld = 4096

// writer gathers rows into transactions. It is the writing goroutine.
type writer struct {
	l    *Log
	held []*pending // nobody waits for these
}

// run commits what is queued, all that waits in one transaction. A row that
// somebody waits for waits for nobody.
func (w *writer) run() {
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	group := make([]*pending, 0, maxGroup)
	for {
		group = group[:0]
		select {
		case p := <-w.l.queue:
			group = append(group, p)
		case <-timer.C:
			w.commit(nil)
			w.l.head.settle()
			continue
		case <-w.l.closing:
			select {
			case p := <-w.l.queue:
				group = append(group, p)
			default:
				w.commit(nil)
				w.l.head.settle()
				return
			}
		}
		group = w.gather(group)
		waits := group[:0]
		for _, p := range group {
			if p.done == nil {
				w.held = append(w.held, p)
			} else {
				waits = append(waits, p)
			}
		}
		if len(waits) > 0 || len(w.held) >= maxGroup {
			w.commit(waits)
		}
		if len(w.held) > 0 || w.l.head.lags() {
			timer.Reset(lingering)
		}
	}
}

// gather takes what else is queued.
func (w *writer) gather(group []*pending) []*pending {
	for len(group) < maxGroup {
		select {
		case p := <-w.l.queue:
			group = append(group, p)
		default:
			return group
		}
	}
	return group
}

// commit writes the held rows and those that somebody waits for, in the order
// of their coming as far as it matters: an outcome after its intent.
func (w *writer) commit(waits []*pending) {
	group := make([]*pending, 0, len(w.held)+len(waits))
	group = append(group, w.held...)
	for _, p := range waits {
		if !p.barrier {
			group = append(group, p)
		}
	}
	var err error
	if len(group) > 0 {
		err = w.l.commit(group)
	}
	switch {
	case err == nil:
		w.held = w.held[:0]
	case len(w.held) > maxHeld || !passing(err):
		w.held = w.held[:0]
	}
	for _, p := range waits {
		if p.barrier {
			w.l.head.settle()
		}
		p.done <- err
	}
}

// passing reports an error that is not the rows' own fault.
func passing(err error) bool {
	var fault *sqlite.Error
	if !errors.As(err, &fault) {
		return true
	}
	switch fault.Code() & 0xff {
	case sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_MISUSE, sqlite3.SQLITE_RANGE:
		return false
	}
	return true
}
