package table

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// indexRest is how long a session commits no row before it writes the records of what it has committed: while
	// requests come, it has better things to do.
	indexRest = time.Second
	// maxUnindexed is the number of blocks without a record at which it does not wait for that: a reader looks at each
	// of their rows, which takes half a second.
	maxUnindexed = 128
)

// Indexer keeps the index of a session's log in the background.
type Indexer struct {
	done  atomic.Int64 // the blocks that were complete when records were written last
	timer *time.Timer
	stop  context.CancelFunc
	ends  sync.WaitGroup
}

// StartIndex writes the records that are missing, and then those of blocks that are completed, until Close.
func (d *Database) StartIndex() *Indexer {
	ctx, stop := context.WithCancel(context.Background())
	x := &Indexer{stop: stop, timer: time.NewTimer(0)}
	x.ends.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-x.timer.C:
				x.done.Store(d.CatchUp(ctx))
			}
		}
	})
	return x
}

// Committed takes note of the newest row, of any process. It accepts nil.
func (x *Indexer) Committed(newest int64) {
	if x == nil {
		return
	}
	switch behind := newest/BlockRows - x.done.Load(); {
	case behind >= maxUnindexed:
		x.timer.Reset(0)
	case behind > 0:
		x.timer.Reset(indexRest)
	}
}

// Close ends the goroutine. It accepts nil.
func (x *Indexer) Close() {
	if x != nil {
		x.stop()
		x.timer.Stop()
		x.ends.Wait()
	}
}
