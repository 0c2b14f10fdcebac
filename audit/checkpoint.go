package audit

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"sync"
)

// Checkpoints move what was committed from the write-ahead log to the
// database, and flush both. SQLite would do so in the middle of some commit,
// with all that wait behind it; here a goroutine does, and commits go on.

const (
	// checkpointRows is after how many rows one is due.
	checkpointRows = 1000
	// walLimit is how large, in bytes, the write-ahead log may grow while
	// commits never pause: then one of them lets it begin anew.
	walLimit = 64 << 20
)

// checkpointer is the goroutine, nil in a log that is open for reading.
type checkpointer struct {
	due  chan *sql.DB
	ends sync.WaitGroup

	// Of the leading goroutine.
	rows  int   // since the last one
	limit int64 // walLimit, but in a test
}

func (l *Log) startCheckpoints() {
	c := &checkpointer{due: make(chan *sql.DB, 1), limit: walLimit}
	c.ends.Go(func() {
		for db := range c.due {
			// Failing is no harm: what is committed stays in the write-ahead log.
			_, _ = db.Exec("PRAGMA wal_checkpoint(PASSIVE)")
		}
	})
	l.checkpoints = c
}

// committed counts rows, and asks for a checkpoint when one is due.
func (l *Log) committed(rows int) {
	c := l.checkpoints
	if c.rows += rows; c.rows < checkpointRows {
		return
	}
	c.rows = 0
	if info, err := os.Stat(l.path + "-wal"); err == nil && info.Size() > c.limit {
		// Not for a reader that takes its time: it is tried again.
		ctx := context.Background()
		_, _ = l.tx.conn.ExecContext(ctx, "PRAGMA busy_timeout = 0")
		_, _ = l.tx.conn.ExecContext(ctx, "PRAGMA wal_checkpoint(RESTART)")
		_, _ = l.tx.conn.ExecContext(ctx, fmt.Sprintf("PRAGMA busy_timeout = %d", l.tx.span.Milliseconds()))
	}
	select {
	case c.due <- l.db:
	default: // one is under way, and due again
	}
}

func (c *checkpointer) stop() {
	close(c.due)
	c.ends.Wait()
}
