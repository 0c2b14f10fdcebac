package audit

import (
	"context"
	"sync"
)

// indexer keeps the index of a session's log: the log's writer passes it the rows that it has committed. If it does
// not see all rows of a block, because other processes write too, it reads them from the database in the background.
// All methods accept nil.
type indexer struct {
	log    *Log
	filler blockFiller
	newest int64 // the block of the newest row
	due    chan struct{}
	stop   context.CancelFunc
	ends   sync.WaitGroup
}

func (l *Log) startIndex() {
	ctx, stop := context.WithCancel(context.Background())
	x := &indexer{log: l, newest: -1, stop: stop, due: make(chan struct{}, 1)}
	x.due <- struct{}{} // earlier blocks may have no record
	x.ends.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-x.due:
				x.catchUp(ctx)
			}
		}
	})
	l.index = x
}

func (x *indexer) close() {
	if x != nil {
		x.stop()
		x.ends.Wait()
	}
}

// add processes rows that were committed. It must be called by one goroutine at a time. An index that cannot be
// written delays and fails nothing.
func (x *indexer) add(rows []*Row) {
	if x == nil {
		return
	}
	for _, r := range rows {
		number := (r.Seq - 1) / blockRows
		if (r.Seq-1)%blockRows == 0 {
			x.begin()
		}
		if number != x.newest {
			if x.newest >= 0 {
				x.request() // unless it was stored, some rows were those of other processes
			}
			x.newest = number
		}
		if x.filler.addRow(r); x.filler.next == blockRows {
			x.store()
		}
	}
}

// begin takes the salt of the index for a new block.
func (x *indexer) begin() {
	x.filler.next = -1
	if f, err := writeIndex(x.log.path); err == nil {
		x.filler.salt = f.salt
		f.close()
	}
}

// store writes the record of the block that is complete.
func (x *indexer) store() {
	x.filler.next = -1
	f, err := writeIndex(x.log.path)
	if err != nil {
		return
	}
	defer f.close()
	if f.salt == x.filler.salt && x.filler.seal() == nil {
		_ = f.store(x.filler.block)
	}
}

// request wakes the goroutine, which looks for blocks without a record.
func (x *indexer) request() {
	select {
	case x.due <- struct{}{}:
	default:
	}
}

// catchUp writes the records of complete blocks that have none, the newest first.
func (x *indexer) catchUp(ctx context.Context) {
	for _, n := range x.log.unindexed(ctx) {
		if x.log.indexBlock(ctx, n) != nil {
			return
		}
	}
}

// unindexed returns the complete blocks without a record, the newest first.
func (l *Log) unindexed(ctx context.Context) (blocks []int64) {
	s, err := l.snapshot(ctx)
	if err != nil {
		return nil
	}
	defer s.close()
	for n := s.complete() - 1; n >= s.firstBlock() && ctx.Err() == nil; n-- {
		if s.index == nil || !s.loads(n) || !s.bound(s.block) {
			blocks = append(blocks, n)
		}
	}
	return blocks
}
