package audit

import (
	"context"
	"errors"
)

// maxBuilt bounds the records that a reader writes after it read the log without them.
const maxBuilt = 32

// indexMissing writes records of blocks that were read without one, as far as it can: readers need none.
func (l *Log) indexMissing(ctx context.Context, blocks []int64) {
	for _, n := range blocks[:min(len(blocks), maxBuilt)] {
		if l.indexBlock(ctx, n) != nil {
			return
		}
	}
}

// indexBlock writes the record of a complete block, unless there is one.
func (l *Log) indexBlock(ctx context.Context, n int64) error {
	x, err := writeIndex(l.path)
	if err != nil {
		return err
	}
	defer x.close()
	s, err := l.snapshot(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	if s.complete() <= n || s.index == nil || s.loads(n) && s.bound(s.block) {
		return nil
	}
	b, err := s.build(ctx, n)
	if errors.Is(err, errNotIndexable) {
		b, err = s.voidBlock(n)
	}
	if err != nil {
		return err
	}
	return x.store(b)
}

// voidBlock returns the record of a block of which all rows have to be read.
func (s *snapshot) voidBlock(n int64) (*indexBlock, error) {
	b := newIndexBlock(n)
	b.void = true
	text, err := s.hash((n + 1) * blockRows)
	if err != nil {
		return nil, err
	}
	hash, ok := parseHash(text)
	if !ok {
		return nil, errNotIndexable
	}
	b.seal(hash)
	return b, nil
}

// errNotIndexable is returned for a block without all of its rows, or with one whose columns the index cannot have.
var errNotIndexable = errors.New("the block cannot be indexed")

// build returns the record of a complete block, made of its rows.
func (s *snapshot) build(ctx context.Context, n int64) (*indexBlock, error) {
	texts := make([]textRow, 0, blockRows)
	err := eachText(ctx, s.conn, seqSpan{n*blockRows + 1, (n + 1) * blockRows}, func(seq int64, text string) error {
		texts = append(texts, textRow{seq, text})
		return nil
	})
	if err != nil {
		return nil, err
	}
	f := blockFiller{salt: s.index.salt}
	byColumn := columnReader{query: s.conn.QueryContext}
	var r rowText
	for _, t := range texts {
		if r.parse(t.seq, t.text) {
			f.add(t.seq, r.indexed(), r.ts, r.prev, r.hash)
			continue
		}
		row, err := byColumn.row(ctx, t.seq)
		if err != nil {
			return nil, err
		}
		if row.err == nil { // otherwise the block stays incomplete
			f.addRow(&row.Row)
		}
	}
	if f.next != blockRows {
		return nil, errNotIndexable
	}
	return f.block, f.seal()
}
