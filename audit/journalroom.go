package audit

import (
	"context"
	"time"
)

// roomTimeout is how long a row waits for a fold to get on. A fold that hangs for longer does not keep rows from the
// journal, whose bound then holds.
const roomTimeout = 30 * time.Second

// awaitRoom waits while the journal has more unfolded bytes than foldFirst: rows come faster than they are folded,
// because other sessions fold theirs too. It does not wait for a database that cannot be written.
func (w *writer) awaitRoom(ctx context.Context) error {
	timer := time.NewTimer(roomTimeout)
	defer timer.Stop()
	for {
		room := w.log.journal.nextFold()
		if !w.log.journal.behind.Load() || w.down.Load() || w.locked.Load() {
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

// nextFold returns a channel that is closed when the next rows are folded, or cannot be.
func (j *journal) nextFold() <-chan struct{} {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.room == nil {
		j.room = make(chan struct{})
	}
	return j.room
}

// tried wakes the goroutines that wait for nextFold, after a fold that advanced or failed. j.mu is locked.
func (j *journal) tried() {
	j.behind.Store(j.written-j.folded > j.foldFirst)
	if j.room != nil {
		close(j.room)
		j.room = nil
	}
}
