package audit

import (
	"database/sql"
	"os"
	"sync"
)

// Checkpoints move commits from the write-ahead log to the database, and flush both. SQLite would do so inside some
// commit, which would delay every goroutine that waits for it. Here a goroutine of its own does, while commits go on.

const (
	// checkpointRows is the number of rows after which a checkpoint is due.
	checkpointRows = 1000
	// walLimit is the size, in bytes, that the write-ahead log may reach while commits never pause. Beyond it, a commit
	// restarts the write-ahead log itself.
	walLimit = 64 << 20
)

// checkpointer is the goroutine; nil in a log that is open for reading.
type checkpointer struct {
	due  chan *sql.DB
	ends sync.WaitGroup

	// Owned by the leader.
	rows  int   // since the last checkpoint
	limit int64 // walLimit, unless a test lowers it
}

func (l *Log) startCheckpoints() {
	c := &checkpointer{due: make(chan *sql.DB, 1), limit: walLimit}
	c.ends.Go(func() {
		for db := range c.due {
			// A failure is harmless: commits stay in the write-ahead log.
			_, _ = db.Exec("PRAGMA wal_checkpoint(PASSIVE)")
		}
	})
	l.checkpoints = c
}

// committed counts rows, and requests a checkpoint when one is due.
func (l *Log) committed(rows int) {
	c := l.checkpoints
	if c.rows += rows; c.rows < checkpointRows {
		return
	}
	c.rows = 0
	if info, err := os.Stat(l.path + "-wal"); err == nil && info.Size() > c.limit {
		// Do not wait for a slow reader: the next time may succeed.
		_ = l.tx.conn.wait(0)
		_ = l.tx.conn.exec("PRAGMA wal_checkpoint(RESTART)")
		_ = l.tx.conn.wait(l.tx.span)
	}
	select {
	case c.due <- l.db:
	default: // one is under way, and another is already due
	}
}

func (c *checkpointer) stop() {
	close(c.due)
	c.ends.Wait()
}
