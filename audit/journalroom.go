package audit

import (
	"context"
	"time"
)

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
