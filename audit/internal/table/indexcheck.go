package table

import (
	"fmt"

	"github.com/ALRubinger/aileron/audit/internal/chain"
)

// indexCheck compares the index with the rows as Verify reads them, and writes the records that are missing.
type indexCheck struct {
	path   string
	index  *indexFile
	stored *indexBlock
	filler blockFiller
	found  func(chain.Finding)
}

// NewIndexCheck returns nil if there is no index. It calls found for what is wrong with the index.
func NewIndexCheck(path string, found func(chain.Finding)) *indexCheck {
	x, err := openIndex(path)
	if err != nil {
		return nil
	}
	return &indexCheck{path: path, index: x, stored: NewIndexBlock(0), filler: blockFiller{salt: x.salt},
		found: found}
}

func (c *indexCheck) Close() { c.index.Close() }

// AddText processes the next row.
func (c *indexCheck) AddText(r *chain.RowText) {
	if c.filler.add(r.Seq, Indexed(r), r.Ts, r.Prev, r.Hash); c.filler.Next == BlockRows {
		c.compare()
	}
}

// AddRow processes the next row.
func (c *indexCheck) AddRow(r *chain.Row) {
	if c.filler.addRow(r); c.filler.Next == BlockRows {
		c.compare()
	}
}

// compare compares the record of a block with its rows. A record that readers would use and that is not what the rows
// make is a finding: a filter would hide rows.
func (c *indexCheck) compare() {
	c.filler.Next = -1
	if c.filler.seal() != nil {
		return
	}
	b := c.stored
	b.number = c.filler.block.number
	usable := c.index.Load(b) && b.Hash == c.filler.block.Hash
	for n := range MarkColumns + 1 {
		usable = usable && c.index.LoadColumn(b, n)
	}
	if usable && b.same(c.filler.block) {
		return
	}
	stored := c.store()
	if !usable {
		return
	}
	why := fmt.Sprintf("%s does not have what rows %d to %d have, so that lists with a filter were not complete",
		IndexName, b.number*BlockRows+1, (b.number+1)*BlockRows)
	if stored {
		why += "; it has now"
	} else {
		why += "; remove it"
	}
	c.found(chain.Finding{Found: chain.ReasonRowChanged, Why: why})
}

// store writes the record of the block, and reports whether it could.
func (c *indexCheck) store() bool {
	x, err := WriteIndex(c.path)
	if err != nil {
		return false
	}
	defer x.Close()
	return x.salt == c.filler.salt && x.Store(c.filler.block) == nil
}
