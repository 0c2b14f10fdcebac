package table

import (
	"context"
	"sync"

	"github.com/ALRubinger/aileron/audit/internal/chain"
)

// Indexer keeps the index of a session's log: the log's writer passes it the rows that it has committed. If it does
// not see all rows of a block, because other processes write too, it reads them from the database in the background.
// All methods accept nil.
type Indexer struct {
	Db     *Database
	Filler blockFiller
	Newest int64 // the block of the newest row
	Due    chan struct{}
	stop   context.CancelFunc
	ends   sync.WaitGroup
}

func (d *Database) StartIndex() *Indexer {
	ctx, stop := context.WithCancel(context.Background())
	x := &Indexer{Db: d, Newest: -1, stop: stop, Due: make(chan struct{}, 1)}
	x.Due <- struct{}{} // earlier blocks may have no record
	x.ends.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-x.Due:
				x.CatchUp(ctx)
			}
		}
	})
	return x
}

func (x *Indexer) Close() {
	if x != nil {
		x.stop()
		x.ends.Wait()
	}
}

// Add processes rows that were committed. It must be called by one goroutine at a time. An index that cannot be
// written delays and fails nothing.
func (x *Indexer) Add(rows []*chain.Row) {
	if x == nil {
		return
	}
	for _, r := range rows {
		number := (r.Seq - 1) / BlockRows
		if (r.Seq-1)%BlockRows == 0 {
			x.begin()
		}
		if number != x.Newest {
			if x.Newest >= 0 {
				x.request() // unless it was stored, some rows were those of other processes
			}
			x.Newest = number
		}
		if x.Filler.addRow(r); x.Filler.Next == BlockRows {
			x.store()
		}
	}
}

// begin takes the salt of the index for a new block.
func (x *Indexer) begin() {
	x.Filler.Next = -1
	if f, err := WriteIndex(x.Db.path); err == nil {
		x.Filler.salt = f.salt
		f.Close()
	}
}

// store writes the record of the block that is complete.
func (x *Indexer) store() {
	x.Filler.Next = -1
	f, err := WriteIndex(x.Db.path)
	if err != nil {
		return
	}
	defer f.Close()
	if f.salt == x.Filler.salt && x.Filler.seal() == nil {
		_ = f.Store(x.Filler.block)
	}
}

// request wakes the goroutine, which looks for blocks without a record.
func (x *Indexer) request() {
	select {
	case x.Due <- struct{}{}:
	default:
	}
}

// CatchUp writes the records of complete blocks that have none, the newest first.
func (x *Indexer) CatchUp(ctx context.Context) {
	for _, n := range x.Db.Unindexed(ctx) {
		if x.Db.IndexBlock(ctx, n) != nil {
			return
		}
	}
}

// Unindexed returns the complete blocks without a record, the newest first.
func (d *Database) Unindexed(ctx context.Context) (blocks []int64) {
	s, err := d.Snapshot(ctx)
	if err != nil {
		return nil
	}
	defer s.Close()
	for n := s.complete() - 1; n >= s.firstBlock() && ctx.Err() == nil; n-- {
		if s.index == nil || !s.loads(n) || !s.bound(s.block) {
			blocks = append(blocks, n)
		}
	}
	return blocks
}
