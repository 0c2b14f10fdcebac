package audit

import (
	"time"

	"github.com/ALRubinger/aileron/audit/internal/table"
)

// acknowledge settles a group whose commit ended with err. The group begins with deferred rows, which no goroutine
// waits for; if counted is not 0, the row behind them counts that many refused requests. It returns how many of the
// deferred rows are settled, and the error for the goroutines that wait.
func (w *writer) acknowledge(err error, deferred, counted int) (done int, waited error) {
	switch {
	case err == nil:
		done = deferred
	case !table.IsTransient(err) && deferred > 0 && w.pace.due():
		done, err = w.salvage(err, deferred)
	}
	if err != nil {
		if deferred == 0 || done < deferred { // otherwise only single rows failed
			w.beginOutage(err, false)
		}
		return done, err
	}
	if counted > 0 {
		w.mu.Lock()
		w.refused -= counted
		w.mu.Unlock()
	}
	if w.outage != nil {
		w.easeOutage(counted)
	}
	return done, nil
}

// salvage commits a group in parts after its commit failed because of a row: first the rows that are waited for, then
// each deferred row alone. A row that fails while others succeed can never be committed, and is lost. If all of them
// fail, the cause is not a row, and they stay deferred. The error is nil if the rows that are waited for are
// committed.
func (w *writer) salvage(cause error, deferred int) (done int, err error) {
	writable := false
	defer func() { w.pace.tried(writable) }()
	if len(w.group) > deferred {
		cause = w.log.commitOrFail(w.group[deferred:], w.with)
		writable = cause == nil
	}
	lost := 0
	for i := range deferred {
		err := w.log.commitOrFail(w.group[i:i+1:i+1], table.Extra{})
		if err != nil && table.IsTransient(err) {
			if cause != nil {
				cause = err
			}
			break
		}
		if done++; err != nil {
			lost++
		} else {
			writable = true
		}
	}
	if !writable {
		return 0, cause
	}
	w.lose(lost)
	return done, cause
}

// lose counts rows that can never be committed.
func (w *writer) lose(n int) {
	if n == 0 {
		return
	}
	w.mu.Lock()
	w.lost += n
	w.mu.Unlock()
	if f := w.log.opts.OnLost; f != nil {
		f(n)
	}
}

// maxPause is the longest time between two attempts to commit rows that the database does not accept.
const maxPause = 8 * time.Second

// pace spaces the attempts to commit rows one by one after the database has not accepted one of them. Each attempt
// costs a transaction a row. A database that accepts none (someone has added a constraint) fails all of them, again
// and again: without a pause, the process that mediates would spend its time on that. The zero value allows an
// attempt.
type pace struct {
	next  time.Time
	pause time.Duration // behind the last attempt
	err   error         // why no row is tried before next; nil: rows are tried together
}

// due reports whether rows may be tried one by one.
func (p *pace) due() bool { return !time.Now().Before(p.next) }

// tried begins the pause behind an attempt. If it was fruitless, the pause is twice the last one, up to maxPause.
func (p *pace) tried(fruitful bool) {
	p.pause *= 2
	if fruitful {
		p.pause = 0
	}
	p.pause = min(max(p.pause, retryEvery), maxPause)
	p.next = time.Now().Add(p.pause)
}

// hold makes err the answer to all that is asked for before the next attempt, from the second fruitless one in a row
// on.
func (p *pace) hold(err error) {
	if p.pause > retryEvery {
		p.err = err
	}
}

// refusal returns the error of hold until the next attempt is due.
func (p *pace) refusal() error {
	if p.err != nil && p.due() {
		p.err = nil
	}
	return p.err
}

// ended records that rows were committed together again.
func (p *pace) ended() { p.pause, p.err = 0, nil }
