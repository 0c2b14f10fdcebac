package rebuild

import (
	"database/sql"
	"encoding/binary"
)

// A damaged database may have rows that its table no longer leads to, because a page above them is overwritten.
// Therefore every page is examined by itself (SQLite file format, 1.6 "B-tree Pages" and 2.1 "Record Format").

const (
	pageSize    = 4096 // of every audit.db: SQLite's default
	leafPage    = 0x0d
	leafHeader  = 8
	maxPayload  = 16 << 20
	fileHeader  = 100
	sizeValidAt = 92
)

// pages copies the rows of every page that looks like a leaf of the table: if whole, only those that match their
// hash.
func (c *rowCopier) pages(source *sql.DB, whole bool) error {
	rows, err := source.QueryContext(c.ctx, "SELECT pgno, data FROM sqlite_dbpage")
	if err != nil {
		return ignoreDamage(err)
	}
	defer rows.Close()
	for rows.Next() {
		var number int64
		var page []byte
		if err := rows.Scan(&number, &page); err != nil {
			return ignoreDamage(err)
		}
		for _, cell := range leafCells(page) {
			values, ok := c.record(source, page, cell)
			if !ok || whole && !matchesHash(values) {
				continue
			}
			if err := c.add(values); err != nil {
				return err
			}
		}
	}
	return ignoreDamage(rows.Err())
}

// leafCells returns where the cells of a page begin; none if the page is not a leaf of a table.
func leafCells(page []byte) (cells []int) {
	if len(page) != pageSize || page[0] != leafPage {
		return nil
	}
	n := int(binary.BigEndian.Uint16(page[3:]))
	for i := range min(n, (pageSize-leafHeader)/2) {
		at := int(binary.BigEndian.Uint16(page[leafHeader+2*i:]))
		if at >= leafHeader+2*n && at < pageSize {
			cells = append(cells, at)
		}
	}
	return cells
}
