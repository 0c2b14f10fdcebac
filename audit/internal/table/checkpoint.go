package table

import (
	"database/sql"
	"os"
	"sync"
)

// Checkpoints move commits from the write-ahead log to the database, and flush both. SQLite would do so inside some
// commit, which would delay every goroutine that waits for it. Here a goroutine of its own does, while commits go on.

const (
	// CheckpointRows is the number of rows after which a checkpoint is due.
	CheckpointRows = 1000
	// walLimit is the size, in bytes, that the write-ahead log may reach while commits never pause. Beyond it, a commit
	// restarts the write-ahead log itself.
	walLimit = 64 << 20
)

// Checkpointer is the goroutine; nil in a log that is open for reading.
type Checkpointer struct {
	Due  chan *sql.DB
	Ends sync.WaitGroup

	// Owned by the leader.
	rows  int   // since the last checkpoint
	Limit int64 // walLimit, unless a test lowers it
}

func StartCheckpoints() *Checkpointer {
	c := &Checkpointer{Due: make(chan *sql.DB, 1), Limit: walLimit}
	c.Ends.Go(func() {
		for db := range c.Due {
			// A failure is harmless: commits stay in the write-ahead log.
			_, _ = db.Exec("PRAGMA wal_checkpoint(PASSIVE)")
		}
	})
	return c
}

// Committed counts rows that tx has committed to d, and requests a checkpoint when one is due.
func (c *Checkpointer) Committed(rows int, tx *Writer, d *Database) {
	if c.rows += rows; c.rows < CheckpointRows {
		return
	}
	c.rows = 0
	if info, err := os.Stat(d.path + "-wal"); err == nil && info.Size() > c.Limit {
		// Do not wait for a slow reader: the next time may succeed.
		_ = tx.Conn.wait(0)
		_ = tx.Conn.Exec("PRAGMA wal_checkpoint(RESTART)")
		_ = tx.Conn.wait(tx.span)
	}
	select {
	case c.Due <- d.SQL():
	default: // one is under way, and another is already due
	}
}

func (c *Checkpointer) Stop() {
	close(c.Due)
	c.Ends.Wait()
}
