package audit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ALRubinger/aileron/audit/internal/journal"
	"github.com/ALRubinger/aileron/audit/internal/table"
)

// groupDelay is how long a deferred row may wait for others to share its commit, which costs more than the rows in
// it.
const groupDelay = 2 * time.Millisecond

// maxGroup is about how many rows share one transaction.
const maxGroup = 256

// maxDeferred bounds the rows that wait until the database can be written again. It is hardly ever reached: without
// the log, no request is admitted.
const maxDeferred = 4096

// writer commits rows in groups (group commit). It has no goroutine of its own: the first goroutine that waits
// becomes the leader. The leader commits its own row and all others in the queue, and then makes the next goroutine
// in the queue the leader. A single row is committed by its own goroutine, without a switch.
type writer struct {
	log *Log // nil: the log is open for reading

	mu       sync.Mutex
	waiting  []*pending
	deferred []*Row // rows that no goroutine waits for
	leading  bool   // there is a leader
	closed   bool
	timer    *time.Timer // commits deferred rows if nothing else does
	refused  int         // denials that could not be recorded, and that no row counts
	noted    int         // denials of this outage that a row of the journal counts
	lost     int         // rows that will never be in the log
	since    time.Time   // when the outage began; zero: there is none

	down           atomic.Bool // the journal cannot be folded, and accepts no request
	locked         atomic.Bool // the last fold did not get the lock of the database
	armed, hurried atomic.Bool // a fold is due, or due at once

	// Owned by the leader.
	group  []*Row
	with   table.Extra // what is committed with group
	outage *Outage     // nil: the log can be written
	failed time.Time   // when a commit failed last
	eased  bool        // a commit has succeeded since
	pace   pace        // of what commits rows one by one
}

func (w *writer) init(l *Log) {
	w.log = l
	w.timer = time.AfterFunc(time.Hour, func() { _ = w.await(context.Background(), &pending{barrier: true}, false) })
	w.timer.Stop()
}

// Append adds one row, waits until it is durable, and returns it. ID and TS are set if they are empty. If ctx ends
// first, the row may or may not be in the log. Errors wrap ErrUnavailable. Nothing of the row is kept afterwards.
//
// A session's row is durable in its journal, and in the database a moment later: its Seq and its hashes are not known
// yet. EventSessionStarted, a row of another session, and that of a command are committed to the database, and returned
// with them.
func (w *writer) Append(ctx context.Context, r Row) (Row, error) {
	if err := w.log.refuses(r.Event); err != nil {
		return r, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if w.isJournaled(&r) {
		return w.appendJournal(ctx, r)
	}
	return w.appendRow(ctx, r)
}

// isJournaled reports whether Append writes r to the journal. A session begins only if the database can be written, and
// what it records about others must not depend on its journal.
func (w *writer) isJournaled(r *Row) bool {
	return w.log != nil && w.log.journal != nil && r.Event != EventSessionStarted &&
		(r.SessionID == w.log.opts.Session || r.SessionID == "")
}

// appendRow commits a row to the database.
func (w *writer) appendRow(ctx context.Context, r Row) (Row, error) {
	p := &pending{row: r}
	if err := w.await(ctx, p, false); err != nil {
		w.countRefusal(&r)
		return r, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return p.row, nil
}

// appendJournal writes a row to the journal. While the journal cannot be folded, it tries that first; while too many
// rows wait for it, it waits until they are folded.
func (w *writer) appendJournal(ctx context.Context, r Row) (Row, error) {
	err := w.admit(ctx)
	if err == nil {
		r.Begin()
		if err = w.log.journal.Add(ctx, &r, true); err != nil {
			w.journalFailed(err)
		}
	}
	if err != nil {
		w.countRefusal(&r)
		return r, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return r, nil
}

// admit waits until the journal accepts a row that is waited for.
func (w *writer) admit(ctx context.Context) error {
	switch {
	case w.down.Load():
		return w.await(ctx, &pending{barrier: true}, false)
	case w.log.journal.Behind.Load():
		return w.awaitRoom(ctx)
	}
	return nil
}

// appendAll appends several rows, which are committed together.
func (w *writer) appendAll(ctx context.Context, rows []*Row, states ...table.JournalState) error {
	return w.appendWith(ctx, rows, table.Extra{States: states})
}

// appendWith appends several rows, which are committed together and with more.
func (w *writer) appendWith(ctx context.Context, rows []*Row, with table.Extra) error {
	if len(rows) == 0 && with.IsEmpty() {
		return nil
	}
	if err := w.await(ctx, &pending{rows: rows, with: with, several: true}, false); err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return nil
}

// AppendSoon adds one row without waiting for its commit. A session's row is written to the journal, at the latest
// when a write under way has ended. If it cannot be, or the log is a command's, the row is deferred: it is committed
// with the next one, after groupDelay at the latest, and before any read through this Log. If the commit fails, it is
// retried with every later commit and every retryEvery. If the process dies, deferred rows are lost.
func (w *writer) AppendSoon(ctx context.Context, r Row) error {
	r.Begin()
	if w.log != nil && w.log.journal != nil && !w.isDeferring() {
		if r.Event == EventSessionEnded {
			w.noteRefusals(ctx)
		}
		err := w.log.journal.Add(ctx, &r, false)
		if err == nil || errors.Is(err, journal.ErrClosed) {
			return wrapUnavailable(err)
		}
		w.journalFailed(err)
	}
	return w.postpone(ctx, r)
}

func wrapUnavailable(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// isDeferring reports whether rows are deferred: later ones must not overtake them.
func (w *writer) isDeferring() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.deferred) > 0
}

// postpone defers a row.
func (w *writer) postpone(ctx context.Context, r Row) error {
	r.Fields = maps.Clone(r.Fields)
	// They may be parts of a request's head of up to 64 KiB, which a row that waits must not keep.
	r.Method, r.Path, r.Host = strings.Clone(r.Method), strings.Clone(r.Path), strings.Clone(r.Host)
	w.mu.Lock()
	if w.log == nil || w.closed {
		w.mu.Unlock()
		return wrapUnavailable(journal.ErrClosed)
	}
	if len(w.deferred) >= maxDeferred && r.Event != EventSessionEnded {
		w.lost++
		w.mu.Unlock()
		return fmt.Errorf("%w: %d rows wait for it", ErrUnavailable, maxDeferred)
	}
	w.deferred = append(w.deferred, &r)
	if len(w.deferred) == 1 {
		w.timer.Reset(groupDelay)
	}
	full := len(w.deferred)%maxGroup == 0
	w.mu.Unlock()
	if full {
		_ = w.await(ctx, &pending{barrier: true}, false) // if it fails, the rows stay deferred
	}
	return nil
}

// flush waits until the rows added before are committed, or cannot be.
func (w *writer) flush(ctx context.Context) {
	if w.log != nil {
		_ = w.await(ctx, &pending{barrier: true}, false)
	}
}

// Flush waits until the rows of AppendSoon are durable, or cannot be now.
func (w *writer) Flush(ctx context.Context) {
	if w.log != nil && w.log.journal != nil && !w.isDeferring() {
		w.log.journal.Flush(ctx)
		return
	}
	w.flush(ctx)
}

// roomTimeout is how long a row waits for a fold to get on. A fold that hangs for longer does not keep rows from the
// journal, whose bound then holds.
const roomTimeout = 30 * time.Second

// awaitRoom waits while the journal has more unfolded bytes than FoldFirst: rows come faster than they are folded,
// because other sessions fold theirs too. It does not wait for a database that cannot be written.
func (w *writer) awaitRoom(ctx context.Context) error {
	timer := time.NewTimer(roomTimeout)
	defer timer.Stop()
	for {
		room := w.log.journal.NextFold()
		if !w.log.journal.Behind.Load() || w.down.Load() || w.locked.Load() {
			return nil
		}
		select {
		case <-room:
			timer.Reset(roomTimeout)
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
