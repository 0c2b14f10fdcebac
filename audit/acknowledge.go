package audit

import (
	"errors"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// acknowledge completes a commit of the group that ended with err. The first
// deferred rows of the group are those that nothing waits for, and one behind them
// counts counted refusals. It returns how many of the deferred rows are done with,
// and the error for the rows that are waited for.
func (w *writer) acknowledge(err error, deferred, counted int) (done int, waited error) {
	switch {
	case err == nil:
		done = deferred
	case !isTransient(err) && deferred > 0 && time.Since(w.salvaged) > retryEvery:
		done, err = w.salvage(err, deferred)
	}
	if err != nil {
		if deferred == 0 || done < deferred { // else it is the fault of one row
			w.beginOutage(err)
		}
		w.keep(w.group[done:deferred])
		return done, err
	}
	if w.log.spill != nil {
		w.log.spill.reset()
		w.keep(w.group[done:deferred])
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

// salvage commits a group in parts after a commit of all failed by the fault of
// a row: first what is waited for, then each of the deferred rows alone. A row that
// fails where others do not can never be committed. Where all of them fail, it
// is not the rows' fault, and they stay deferred. The error is nil when what is waited
// for is committed.
func (w *writer) salvage(cause error, deferred int) (done int, err error) {
	w.salvaged = time.Now()
	writable := false
	if len(w.group) > deferred {
		cause = w.log.commitOrFail(w.group[deferred:])
		writable = cause == nil
	}
	lost := 0
	for i := range deferred {
		err := w.log.commitOrFail(w.group[i : i+1 : i+1])
		if err != nil && isTransient(err) {
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

// lose counts rows that cannot be committed, ever.
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

// keep writes rows that nothing waits for to the spill file. Those for which it
// has no space stay in memory only, and the end of the session is written
// behind all others, by close.
func (w *writer) keep(rows []*Row) {
	l := w.log
	if l.spill == nil {
		return
	}
	for _, r := range rows {
		if r.Event != EventSessionEnded && l.spill.keep(r, l.known) != nil {
			return
		}
	}
}

// isTransient reports whether err is not the fault of the rows themselves.
func isTransient(err error) bool {
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
