package audit

import (
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
