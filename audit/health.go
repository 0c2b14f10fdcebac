package audit

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// A page that is overwritten under a running session is seen by no commit:
// these only touch the newest rows. So a session reads the log, a bounded part
// of it at a time, on a connection of its own that has nothing in memory: at
// the start, and then at intervals, from the first row to the last and again.

const (
	// healthEvery is the time between two looks, of which the first pass
	// takes every tenth.
	healthEvery = 2 * time.Second
	// healthSpan is about how long one look reads.
	healthSpan = 25 * time.Millisecond
	// healthTail is how many of the newest rows every look reads.
	healthTail = 256
	// healthChunk is how many further rows are read between two looks at the
	// clock.
	healthChunk = 1024
)

// DamageError is a row that cannot be read, because the database is damaged.
type DamageError struct {
	Seq int64 // the first row that cannot be read; 0: the database cannot be opened
	Err error
}

func (e *DamageError) Error() string {
	if e.Seq == 0 {
		return fmt.Sprintf("audit.db is damaged: it cannot be opened: %v", e.Err)
	}
	return fmt.Sprintf("audit.db is damaged: row %d cannot be read: %v", e.Seq, e.Err)
}

func (e *DamageError) Unwrap() error { return e.Err }

// health reads the log of a session in the background.
type health struct {
	path    string
	report  func(*DamageError) // nil: it is not reported
	found   atomic.Pointer[DamageError]
	foreign atomic.Pointer[SchemaError] // the database is of another version now
	now     chan struct{}               // asks for a look
	stop    context.CancelFunc
	ends    sync.WaitGroup

	cursor int64 // the rows up to it were read in this pass
	passed bool  // a pass is complete
}

// startHealth looks at the log once, and then in the background until Close.
func (l *Log) startHealth() {
	ctx, cancel := context.WithCancel(context.Background())
	h := &health{path: l.path, report: l.opts.OnDamage, stop: cancel, now: make(chan struct{}, 1)}
	h.examine(ctx)
	h.ends.Go(func() { h.run(ctx) })
	l.health = h
}

func (h *health) close() {
	if h != nil {
		h.stop()
		h.ends.Wait()
	}
}

// Damage returns a *DamageError while a row of the log cannot be read. No
// intent is committed then. It is nil for a log that no session writes.
func (l *Log) Damage() error {
	if l.health == nil {
		return nil
	}
	if d := l.health.found.Load(); d != nil {
		return d
	}
	return nil
}

// changed returns a *SchemaError when the database became one of another
// version while a session runs: nothing is written to it then.
func (l *Log) changed() error {
	if l.health == nil {
		return nil
	}
	if e := l.health.foreign.Load(); e != nil {
		return e
	}
	return nil
}

// refuses returns why r must not be committed: it is an intent, and the log
// under it is damaged. Outcomes are committed as long as they can be.
func (l *Log) refuses(r Row) error {
	if l == nil || r.Event != EventProxyStarted {
		return nil
	}
	return l.Damage()
}

func (h *health) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		every := healthEvery
		if !h.passed {
			every /= 10
		}
		timer.Reset(every)
		select {
		case <-ctx.Done():
			return
		case <-h.now:
		case <-timer.C:
		}
		h.examine(ctx)
	}
}

// examine takes one look, and reports what changed. A file that is being
// replaced may look damaged once.
func (h *health) examine(ctx context.Context) {
	var foreign *SchemaError
	_ = errors.As(checkSchema(h.path), &foreign)
	h.foreign.Store(foreign)
	var found *DamageError
	for range 2 {
		err := h.readPart(ctx)
		if ctx.Err() != nil || err != nil && !errors.As(err, &found) {
			return // that is not known now: a lock, a full table of files
		}
		if err == nil {
			found = nil
			break
		}
	}
	before := h.found.Swap(found)
	if found != nil {
		h.cursor = max(0, found.Seq-1) // where it is looked at again
	}
	if (before == nil) != (found == nil) && h.report != nil {
		h.report(found)
	}
}

// look reads the newest rows, and further ones for about healthSpan. The error
// is a *DamageError for what is damaged.
func (h *health) readPart(ctx context.Context) error {
	if _, err := os.Stat(h.path); errors.Is(err, fs.ErrNotExist) {
		return nil // the next commit finds that
	}
	db, err := sql.Open("sqlite", dsn(h.path)+"?mode=ro&_pragma=busy_timeout(1000)")
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	end := time.Now().Add(healthSpan)
	_, _, err = readable(ctx, db, "SELECT seq, hash FROM events ORDER BY seq DESC LIMIT ?", healthTail)
	if isDamage(err) { // which row it is shows from the front
		last, _, front := readable(ctx, db, "SELECT seq, hash FROM events WHERE seq > ? ORDER BY seq", h.cursor)
		if last = max(last, h.cursor); last > 0 && front != nil {
			return damageAt(last+1, front)
		}
	}
	if err != nil {
		return damageAt(0, err)
	}
	for {
		last, n, err := readable(ctx, db, "SELECT seq, hash FROM events WHERE seq > ? ORDER BY seq LIMIT ?", h.cursor, healthChunk)
		if err != nil {
			return damageAt(max(last, h.cursor)+1, err)
		}
		if h.cursor = last; n < healthChunk {
			h.cursor, h.passed = 0, true
			return nil
		}
		if time.Now().After(end) {
			return nil
		}
	}
}

// readable reads rows with their last column, and so all of them. It returns
// the last one, and how many there were.
func readable(ctx context.Context, db *sql.DB, query string, args ...any) (last int64, n int, err error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return 0, 0, err
	}
	defer rows.Close()
	var hash string
	for rows.Next() {
		if err := rows.Scan(&last, &hash); err != nil {
			return last, n, err
		}
		n++
	}
	return last, n, rows.Err()
}

// damageAt returns err, as a *DamageError where it is one.
func damageAt(seq int64, err error) error {
	switch {
	case noTable(err):
		return nil // it is being made
	case isDamage(err):
		return &DamageError{Seq: max(seq, 0), Err: err}
	}
	return err
}
