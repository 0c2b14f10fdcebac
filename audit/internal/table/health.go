package table

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/ALRubinger/aileron/audit/internal/chain"
)

// Commits only touch the newest rows, so none of them notices a page that is overwritten under a running session.
// Therefore a session reads the log on a connection of its own with an empty page cache: a bounded part at the start
// and then at intervals, from the first row to the last, over and over. It compares the number and prev_hash of each
// row with the row before, and leaves the content of rows to Verify, which costs five times as much.

const (
	// healthEvery is the time between two checks; a tenth of it until the first pass is complete.
	healthEvery = 2 * time.Second
	// maxHealthRests is how many checks in a row are left out while the files of the log do not change.
	maxHealthRests = 30
	// healthSpan is about how long one check reads.
	healthSpan = 25 * time.Millisecond
	// HealthTail is how many of the newest rows every check reads.
	HealthTail = 256
	// HealthChunk is how many further rows are read between two looks at the time.
	HealthChunk = 1024
	// maxBreaks bounds the rows that are reported because they do not fit the chain.
	maxBreaks = 64
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

// Health checks the log of a session in the background.
type Health struct {
	Path    string
	report  func(*DamageError)                        // nil: it is not reported
	broken  func(context.Context, chain.Breach) error // records that a row does not fit the chain
	found   atomic.Pointer[DamageError]
	foreign atomic.Pointer[SchemaError] // the database is now of another version
	Now     chan struct{}               // requests a check
	stop    context.CancelFunc
	ends    sync.WaitGroup

	Cursor int64        // the rows up to this one were read in this pass
	Passes atomic.Int64 // that are complete

	files   [2]fileState // the database and its write-ahead log
	changed int64        // the passes that were complete when the files had changed, or a report of a break had failed
	rests   int          // checks in a row that were left out

	breaks   []chain.Breach // that the check under way met
	reported []chain.Breach
}

// StartHealth checks the log at path once, and then in the background until close. It calls report, unless it is nil,
// with what is damaged, and with nil when all rows can be read again; and broken with a row that does not fit the
// chain, until that returns nil.
func StartHealth(
	path string, report func(*DamageError), broken func(context.Context, chain.Breach) error,
) *Health {
	ctx, cancel := context.WithCancel(context.Background())
	h := &Health{Path: path, report: report, broken: broken, stop: cancel, Now: make(chan struct{}, 1)}
	h.examine(ctx)
	h.ends.Go(func() { h.run(ctx) })
	return h
}

// Close ends the checks. It accepts nil.
func (h *Health) Close() {
	if h != nil {
		h.stop()
		h.ends.Wait()
	}
}

// Damage returns a *DamageError while a row of the log cannot be read. It accepts nil.
func (h *Health) Damage() error {
	if h == nil {
		return nil
	}
	if d := h.found.Load(); d != nil {
		return d
	}
	return nil
}

// Changed returns a *SchemaError once the database has become one of another version. It accepts nil.
func (h *Health) Changed() error {
	if h == nil {
		return nil
	}
	if e := h.foreign.Load(); e != nil {
		return e
	}
	return nil
}

// run checks the log at intervals until ctx ends.
func (h *Health) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		every := healthEvery
		if h.Passes.Load() == 0 {
			every /= 10
		}
		timer.Reset(every)
		select {
		case <-ctx.Done():
			return
		case <-h.Now:
		case <-timer.C:
			if h.Rests() {
				continue
			}
		}
		h.examine(ctx)
	}
}

// fileState is what is known of a file without reading it.
type fileState struct {
	id       uint64 // 0: there is none
	size     int64
	modified time.Time
}

func stateOf(path string) fileState {
	info, err := os.Stat(path)
	if err != nil {
		return fileState{}
	}
	s := fileState{size: info.Size(), modified: info.ModTime()}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		s.id = stat.Ino
	}
	return s
}

// isRecent reports whether a file was changed less than a check ago, or in the future.
func (s fileState) isRecent() bool { return s.id != 0 && time.Since(s.modified) < healthEvery }

// Rests reports whether a check can be left out: every row was read since the files of the log have changed, and
// nothing is wrong. Now and then none is left out, for a page that changes without a trace. A read and a change after
// it may have the same time in the file system's clock: a file that was changed just now counts as changing.
func (h *Health) Rests() bool {
	database, walog := stateOf(h.Path), stateOf(h.Path+"-wal")
	if now := [2]fileState{database, walog}; now != h.files || database.isRecent() || walog.isRecent() {
		h.files, h.changed = now, h.Passes.Load()
	}
	if h.Passes.Load() < h.changed+2 || h.Damage() != nil || h.Changed() != nil || h.rests == maxHealthRests {
		h.rests = 0
		return false
	}
	h.rests++
	return true
}

// examine checks once, and reports a change. It tries twice, because a file that is being replaced may look damaged
// once.
func (h *Health) examine(ctx context.Context) {
	var foreign *SchemaError
	_ = errors.As(CheckSchema(h.Path), &foreign)
	h.foreign.Store(foreign)
	var found *DamageError
	for range 2 {
		h.breaks = h.breaks[:0]
		err := h.ReadPart(ctx)
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
		h.Cursor = max(0, found.Seq-1) // the next check begins there
	}
	if (before == nil) != (found == nil) && h.report != nil {
		h.report(found)
	}
	if found == nil {
		h.reportBreaks(ctx)
	}
}

// reportBreaks reports the rows that do not fit the chain, and still do not when they are read once more.
func (h *Health) reportBreaks(ctx context.Context) {
	for _, b := range h.breaks {
		if h.hasBreak(ctx, b) && h.broken(ctx, b) == nil {
			h.reported = append(h.reported, b)
		} else {
			h.changed = h.Passes.Load()
		}
	}
}

// hasBreak reports whether the database has the break now.
func (h *Health) hasBreak(ctx context.Context, b chain.Breach) bool {
	again := Health{Path: h.Path}
	db, err := again.open()
	if err != nil {
		return false
	}
	defer db.Close()
	_, _, err = again.readable(ctx, db, links+"WHERE seq <= ? ORDER BY seq DESC LIMIT 2", b.Next)
	return err == nil && slices.Contains(again.breaks, b)
}

// meet notes that next is not chained to the row before it.
func (h *Health) meet(before, next chain.Link) {
	b := before.Break(next)
	if b == nil || len(h.breaks)+len(h.reported) >= maxBreaks ||
		slices.Contains(h.reported, *b) || slices.Contains(h.breaks, *b) {
		return
	}
	h.breaks = append(h.breaks, *b)
}

// links selects what readable reads.
const links = "SELECT seq, prev_hash, hash FROM events "

// open opens the database on a connection of its own.
func (h *Health) open() (*sql.DB, error) {
	db, err := sql.Open("sqlite", Dsn(h.Path)+"?mode=ro&_pragma=busy_timeout(1000)")
	if err == nil {
		db.SetMaxOpenConns(1)
	}
	return db, err
}

// ReadPart reads the newest rows, and further ones for about healthSpan. The error is a *DamageError if the database
// is damaged.
func (h *Health) ReadPart(ctx context.Context) error {
	if _, err := os.Stat(h.Path); errors.Is(err, fs.ErrNotExist) {
		return nil // the next commit notices that
	}
	db, err := h.open()
	if err != nil {
		return err
	}
	defer db.Close()
	end := time.Now().Add(healthSpan)
	_, _, err = h.readable(ctx, db, links+"ORDER BY seq DESC LIMIT ?", HealthTail)
	if IsDamage(err) { // find the row, from the front
		last, _, front := h.readable(ctx, db, links+"WHERE seq > ? ORDER BY seq", h.Cursor)
		if last = max(last, h.Cursor); last > 0 && front != nil {
			return damageAt(last+1, front)
		}
	}
	if err != nil {
		return damageAt(0, err)
	}
	for {
		// The row at the cursor is read again, so that the next one is compared with it.
		last, n, err := h.readable(ctx, db, links+"WHERE seq >= ? ORDER BY seq LIMIT ?", h.Cursor, HealthChunk+1)
		if err != nil {
			return damageAt(max(last, h.Cursor)+1, err)
		}
		if h.Cursor = last; n <= HealthChunk {
			h.Cursor = 0
			h.Passes.Add(1)
			return nil
		}
		if time.Now().After(end) {
			return nil
		}
	}
}

// readable reads the last column of consecutive rows, and therefore all of each row, and compares them. It returns the
// number of the last row, and how many there were. A prune does not matter: it removes the first rows of the log.
func (h *Health) readable(ctx context.Context, db *sql.DB, query string, args ...any) (last int64, n int, err error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return 0, 0, err
	}
	defer rows.Close()
	var before chain.Link
	for rows.Next() {
		var r chain.Link
		err := rows.Scan(&r.Seq, &r.Prev, &r.Hash)
		if last = r.Seq; err != nil {
			return last, n, err
		}
		switch {
		case n > 0 && r.Seq > before.Seq:
			h.meet(before, r)
		case n > 0:
			h.meet(r, before)
		}
		before = r
		n++
	}
	return last, n, rows.Err()
}

// damageAt returns err, as a *DamageError if it means damage.
func damageAt(seq int64, err error) error {
	switch {
	case NoTable(err):
		return nil // it is being created
	case IsDamage(err):
		return &DamageError{Seq: max(seq, 0), Err: err}
	}
	return err
}
