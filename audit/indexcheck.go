package audit

import "fmt"

// indexCheck compares the index with the rows as Verify reads them, and writes the records that are missing. Its
// methods accept nil.
type indexCheck struct {
	path   string
	index  *indexFile
	stored *indexBlock
	filler blockFiller
	found  func(Finding)
}

// newIndexCheck returns nil if there is no index.
func newIndexCheck(path string) *indexCheck {
	x, err := openIndex(path)
	if err != nil {
		return nil
	}
	return &indexCheck{path: path, index: x, stored: newIndexBlock(0), filler: blockFiller{salt: x.salt}}
}

func (c *indexCheck) close() {
	if c != nil {
		c.index.close()
	}
}

// add processes the next row.
func (c *indexCheck) add(seq int64, values indexedValues, ts int64, prev, hash string) {
	if c == nil {
		return
	}
	if c.filler.add(seq, values, ts, prev, hash); c.filler.next == blockRows {
		c.compare()
	}
}

// addRow processes the next row.
func (c *indexCheck) addRow(r *Row) {
	if c == nil {
		return
	}
	if c.filler.addRow(r); c.filler.next == blockRows {
		c.compare()
	}
}

// compare compares the record of a block with its rows. A record that readers would use and that is not what the rows
// make is a finding: a filter would hide rows.
func (c *indexCheck) compare() {
	c.filler.next = -1
	if c.filler.seal() != nil {
		return
	}
	b := c.stored
	b.number = c.filler.block.number
	usable := c.index.load(b) && b.hash == c.filler.block.hash
	for n := range markColumns + 1 {
		usable = usable && c.index.loadColumn(b, n)
	}
	if usable && b.same(c.filler.block) {
		return
	}
	stored := c.store()
	if !usable {
		return
	}
	why := fmt.Sprintf("%s does not have what rows %d to %d have, so that lists with a filter were not complete",
		indexName, b.number*blockRows+1, (b.number+1)*blockRows)
	if stored {
		why += "; it has now"
	} else {
		why += "; remove it"
	}
	c.found(Finding{Found: reasonRowChanged, Why: why})
}

// store writes the record of the block, and reports whether it could.
func (c *indexCheck) store() bool {
	x, err := writeIndex(c.path)
	if err != nil {
		return false
	}
	defer x.close()
	return x.salt == c.filler.salt && x.store(c.filler.block) == nil
}
