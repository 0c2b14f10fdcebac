package table

import (
	"context"
	"errors"

	"github.com/ALRubinger/aileron/audit/internal/chain"
)

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
	s, err := d.Snapshot(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	if s.complete() <= n || s.index == nil || s.loads(n) && s.bound(s.block) {
		return nil
	}
	b, err := s.Build(ctx, n)
	if errors.Is(err, errNotIndexable) {
		b, err = s.voidBlock(n)
	}
	if err != nil {
		return err
	}
	return x.Store(b)
}

// voidBlock returns the record of a block of which all rows have to be read.
func (s *snapshot) voidBlock(n int64) (*indexBlock, error) {
	b := NewIndexBlock(n)
	b.void = true
	text, err := s.hash((n + 1) * BlockRows)
	if err != nil {
		return nil, err
	}
	hash, ok := parseHash(text)
	if !ok {
		return nil, errNotIndexable
	}
	b.Seal(hash)
	return b, nil
}

// errNotIndexable is returned for a block without all of its rows, or with one whose columns the index cannot have.
var errNotIndexable = errors.New("the block cannot be indexed")

// Build returns the record of a complete block, made of its rows.
func (s *snapshot) Build(ctx context.Context, n int64) (*indexBlock, error) {
	texts := make([]textRow, 0, BlockRows)
	err := EachText(ctx, s.Conn, SeqSpan{n*BlockRows + 1, (n + 1) * BlockRows}, func(seq int64, text string) error {
		texts = append(texts, textRow{seq, text})
		return nil
	})
	if err != nil {
		return nil, err
	}
	f := blockFiller{salt: s.index.salt}
	byColumn := columnReader{query: s.Conn.QueryContext}
	var r chain.RowText
	for _, t := range texts {
		if r.Parse(t.seq, t.text) {
			f.add(t.seq, Indexed(&r), r.Ts, r.Prev, r.Hash)
			continue
		}
		row, err := byColumn.row(ctx, t.seq)
		if err != nil {
			return nil, err
		}
		if row.Err == nil { // otherwise the block stays incomplete
			f.addRow(&row.Row)
		}
	}
	if f.Next != BlockRows {
		return nil, errNotIndexable
	}
	return f.block, f.seal()
}
