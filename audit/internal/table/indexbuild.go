package table

import (
	"context"
	"fmt"

	"github.com/ALRubinger/aileron/audit/internal/chain"
)

// A record is made of the rows of the database: for a reader that read a block without one, for a session that rests,
// and for Verify, which compares it with the record that is there.

// maxBuilt bounds the records that a reader writes after it read the log without them.
const maxBuilt = 32

// indexMissing writes records of blocks that were read without one, as far as it can: readers need none.
func (d *Database) indexMissing(ctx context.Context, blocks []int64) {
	for _, n := range blocks[:min(len(blocks), maxBuilt)] {
		if d.IndexBlock(ctx, n) != nil {
			return
		}
	}
}

// IndexBlock writes the record of a complete block, unless there is one.
func (d *Database) IndexBlock(ctx context.Context, n int64) error {
	x, err := WriteIndex(d.path)
	if err != nil {
		return err
	}
	defer x.Close()
	s, err := d.TableSnapshot()
	if err != nil {
		return err
	}
	defer s.Close()
	if s.complete() <= n || s.index != nil && s.loads(n) && s.bound(s.block) {
		return nil
	}
	b, err := s.build(ctx, n, x.salt)
	if err != nil {
		return err
	}
	return x.Store(b)
}

// lastTime is the last second of the year 2200, the latest that the index can have: a number of ns ends in 2262.
const lastTime = 7289654399

// Positions in the columns that build reads: what a group counts, and these.
const (
	blockPrev = iota + groupNames + groupHost + 1
	blockHash
	blockID
)

// markColumn is where build reads each indexed column.
var markColumn = [MarkColumns]int32{
	MarkSession: groupNames + groupSession, markEvent: groupNames + groupEvent, markDecision: groupNames + groupDecision,
	markHost: groupNames + groupHost, markConnector: groupNames + groupConnector, MarkID: blockID,
	markReason: groupNames + groupReason, markOperation: groupNames + groupOperation,
	markBinding: groupNames + groupBinding,
}

// build returns the record of a complete block. If some of its rows are missing or do not follow one another, or the
// index cannot have a time, the block is one of which all rows have to be read.
func (s *Counting) build(ctx context.Context, n int64, salt uint64) (*indexBlock, error) {
	b, sums := NewIndexBlock(n), newGrouping(GroupBy{Hosts: true, Intents: true}, 0)
	slot := 0
	var before, last [32]byte
	span := Filter{AfterSeq: n * BlockRows, ThroughSeq: (n + 1) * BlockRows}
	err := s.Each(ctx, span, sums.columns()+", prev_hash, hash, id", func(row *Statement) error {
		seq, _ := row.Number(groupSeq)
		ts, isTime := chain.ParseStamp(row.text(groupTS))
		prev, _ := parseHash(row.text(blockPrev))
		hash, isHash := parseHash(row.text(blockHash))
		last = hash
		if seq != span.AfterSeq+int64(slot)+1 || slot > 0 && prev != before || !isTime || !isHash {
			b.void = true
			return nil
		}
		var marks [MarkColumns]uint32
		for i := range marks {
			marks[i] = mark(salt, row.text(markColumn[i]))
		}
		b.set(slot, marks, ts)
		sums.add(row)
		before = hash
		slot++
		return nil
	})
	if err != nil {
		return nil, err
	}
	if b.void = b.void || slot < BlockRows; b.void {
		b = NewIndexBlock(n)
		b.void = true
	} else {
		encodeSums(b.Column(SumsColumn), sums.order)
	}
	b.Seal(last)
	return b, nil
}

// CatchUp writes the records of complete blocks that have none, the newest first, and returns how many blocks are
// complete.
func (d *Database) CatchUp(ctx context.Context) (complete int64) {
	blocks, complete := d.Unindexed(ctx)
	for _, n := range blocks {
		if d.IndexBlock(ctx, n) != nil {
			break
		}
	}
	return complete
}

// Unindexed returns the complete blocks without a record, the newest first, and how many blocks are complete.
func (d *Database) Unindexed(ctx context.Context) (blocks []int64, complete int64) {
	s, err := d.TableSnapshot()
	if err != nil {
		return nil, 0
	}
	defer s.Close()
	for n := s.complete() - 1; n >= s.firstBlock() && ctx.Err() == nil; n-- {
		if s.index == nil || !s.loads(n) || !s.bound(s.block) {
			blocks = append(blocks, n)
		}
	}
	return blocks, s.complete()
}

// CheckIndex compares every record of the index with the rows, and writes those that differ anew. It calls found for
// each that readers would have used: a filter would have hidden rows. An index that does not exist is not made.
func (d *Database) CheckIndex(ctx context.Context, found func(chain.Finding)) {
	for n, complete := int64(0), int64(1); n < complete && ctx.Err() == nil; n++ {
		s, err := d.TableSnapshot()
		if err != nil {
			return
		}
		if complete = s.complete(); n == 0 {
			n = s.firstBlock()
		}
		if n < complete && s.index != nil {
			d.checkBlock(ctx, s, n, found)
		}
		s.Close()
	}
}

func (d *Database) checkBlock(ctx context.Context, s *Counting, n int64, found func(chain.Finding)) {
	usable := s.loads(n) && s.bound(s.block)
	for column := range columnCount {
		usable = usable && s.index.LoadColumn(s.block, column)
	}
	b, err := s.build(ctx, n, s.index.salt)
	if err != nil || b.void || usable && b.same(s.block) {
		return // without all of its rows, what its record had to be is not known: some may have been pruned
	}
	stored := d.replaceRecord(b, s.index.salt)
	if !usable {
		return
	}
	why := fmt.Sprintf("%s does not have what rows %d to %d have, so that lists with a filter and counts were wrong",
		IndexName, n*BlockRows+1, (n+1)*BlockRows)
	if stored {
		why += "; it has now"
	} else {
		why += "; remove it"
	}
	found(chain.Finding{Found: chain.ReasonRowChanged, Why: why})
}

// replaceRecord writes a record, and reports whether it could.
func (d *Database) replaceRecord(b *indexBlock, salt uint64) bool {
	x, err := WriteIndex(d.path)
	if err != nil {
		return false
	}
	defer x.Close()
	return x.salt == salt && x.Store(b) == nil
}
