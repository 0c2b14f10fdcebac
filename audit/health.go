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

// Commits only touch the newest rows, so none of them notices a page that is overwritten under a running session.
// Therefore a session reads the log on a connection of its own with an empty page cache: a bounded part at the start
// and then at intervals, from the first row to the last, over and over.

const (
	// healthEvery is the time between two checks; a tenth of it until the first pass is complete.
	healthEvery = 2 * time.Second
	// healthSpan is about how long one check reads.
	healthSpan = 25 * time.Millisecond
	// healthTail is how many of the newest rows every check reads.
	healthTail = 256
	// healthChunk is how many further rows are read between two looks at the time.
	healthChunk = 1024
)

// DamageError is returned when a row cannot be read because the database is damaged.
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

// health checks the log of a session in the background.
type health struct {
	path    string
	report  func(*DamageError) // nil: it is not reported
	found   atomic.Pointer[DamageError]
	foreign atomic.Pointer[SchemaError] // the database is now of another version
	now     chan struct{}               // requests a check
	stop    context.CancelFunc
	ends    sync.WaitGroup

	cursor int64 // the rows up to this one were read in this pass
	passed bool  // a pass is complete
}

// startHealth checks the log once, and then in the background until Close.
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

// Damage returns a *DamageError while a row of the log cannot be read: no intent is committed then. It is nil for a
// log that is not a session's.
func (l *Log) Damage() error {
	if l.health == nil {
		return nil
	}
	if d := l.health.found.Load(); d != nil {
		return d
	}
	return nil
}

// changed returns a *SchemaError once the database has become one of another version under a running session: nothing
// is written to it then.
func (l *Log) changed() error {
	if l.health == nil {
		return nil
	}
	if e := l.health.foreign.Load(); e != nil {
		return e
	}
	return nil
}

// refuses returns why a row must not be committed: it is an intent, and the log is damaged or of another version.
// Outcomes are committed as long as possible.
func (l *Log) refuses(e Event) error {
	if l == nil || e != EventProxyStarted {
		return nil
	}
	if err := l.changed(); err != nil {
		return err
	}
	return l.Damage()
}

// run checks the log at intervals until ctx ends.
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

// examine checks once, and reports a change. It tries twice, because a file that is being replaced may look damaged
// once.
func (h *health) examine(ctx context.Context) {
	var foreign *SchemaError
	_ = errors.As(checkSchema(h.path), &foreign)
	h.foreign.Store(foreign)
	var found *DamageError
	for range 2 {
		err := h.readPart(ctx)
		if ctx.Err() != nil || err != nil && !errors.As(err, &found) {
			return // undecided: a lock, or no file descriptors
		}
		if err == nil {
			found = nil
			break
		}
	}
	before := h.found.Swap(found)
	if found != nil {
		h.cursor = max(0, found.Seq-1) // the next check begins there
	}
	if (before == nil) != (found == nil) && h.report != nil {
		h.report(found)
	}
}

// readPart reads the newest rows, and further ones for about healthSpan. The error is a *DamageError if the database
// is damaged.
func (h *health) readPart(ctx context.Context) error {
	if _, err := os.Stat(h.path); errors.Is(err, fs.ErrNotExist) {
		return nil // the next commit notices that
	}
	db, err := sql.Open("sqlite", dsn(h.path)+"?mode=ro&_pragma=busy_timeout(1000)")
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	end := time.Now().Add(healthSpan)
	_, _, err = readable(ctx, db, "SELECT seq, hash FROM events ORDER BY seq DESC LIMIT ?", healthTail)
	if isDamage(err) { // find the row, from the front
		last, _, front := readable(ctx, db, "SELECT seq, hash FROM events WHERE seq > ? ORDER BY seq", h.cursor)
		if last = max(last, h.cursor); last > 0 && front != nil {
			return damageAt(last+1, front)
		}
	}
	if err != nil {
		return damageAt(0, err)
	}
	for {
		const query = "SELECT seq, hash FROM events WHERE seq > ? ORDER BY seq LIMIT ?"
		last, n, err := readable(ctx, db, query, h.cursor, healthChunk)
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

// readable reads the last column of rows, and therefore all of each row. It returns the number of the last row, and
// how many there were.
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

// damageAt returns err, as a *DamageError if it means damage.
func damageAt(seq int64, err error) error {
	switch {
	case noTable(err):
		return nil // it is being created
	case isDamage(err):
		return &DamageError{Seq: max(seq, 0), Err: err}
	}
	return err
}
