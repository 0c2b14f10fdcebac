package audit

import "time"

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
