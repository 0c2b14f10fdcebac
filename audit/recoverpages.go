package audit

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
)

// A damaged database may hold rows that its table does not lead to any more:
// a page above them is overwritten. Their own pages are looked at one by one
// (SQLite file format, 1.6 "B-tree Pages" and 2.1 "Record Format").

const (
	pageSize    = 4096 // of every audit.db: SQLite's default
	leafPage    = 0x0d
	leafHeader  = 8
	maxPayload  = 16 << 20
	fileHeader  = 100
	sizeValidAt = 92
)

// source opens the kept file for reading. Where its first page is damaged, it
// is that of an empty log in a copy.
func (r *recovery) source(ctx context.Context) (db *sql.DB, done func(), err error) {
	path, scratch := r.kept, r.work+".source"
	db, err = openKept(ctx, path)
	if isDamage(err) {
		if err := r.transplant(scratch); err != nil {
			return nil, nil, err
		}
		path = scratch
		db, err = openKept(ctx, path)
	}
	done = func() {
		_ = db.Close()
		_ = os.Remove(path + "-shm")
		_, _ = os.Remove(scratch), os.Remove(scratch+"-wal")
	}
	if err != nil {
		return nil, nil, err
	}
	return db, done, nil
}

func openKept(ctx context.Context, path string) (*sql.DB, error) {
	mode := "?mode=ro"
	if _, err := os.Stat(path + "-wal"); err != nil {
		mode = "?mode=ro&immutable=1" // SQLite creates none
	}
	db, err := sql.Open("sqlite", dsn(path)+mode)
	if err != nil {
		return nil, err
	}
	rows, err := db.QueryContext(ctx, "SELECT "+columns+" FROM events LIMIT 0")
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, rows.Close()
}

// transplant copies the kept file to scratch, with the first page of an empty
// log.
func (r *recovery) transplant(scratch string) error {
	for _, suffix := range []string{"", "-wal"} {
		_ = os.Remove(scratch + suffix)
		if err := copyWhole(r.kept+suffix, scratch+suffix); err != nil && (suffix == "" || !errors.Is(err, os.ErrNotExist)) {
			return err
		}
	}
	first, err := emptyFirstPage(scratch + ".empty")
	if err != nil {
		return err
	}
	first[sizeValidAt]++ // the number of pages is that of the file, not that of the header
	if _, err := os.Stat(scratch + "-wal"); err == nil {
		first[18], first[19] = 2, 2 // WAL
	}
	f, err := os.OpenFile(scratch, os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(first, 0)
	return errors.Join(err, f.Close())
}

// emptyFirstPage returns the first page of a log without rows.
func emptyFirstPage(scratch string) ([]byte, error) {
	defer os.Remove(scratch)
	db, err := sql.Open("sqlite", dsn(scratch))
	if err != nil {
		return nil, err
	}
	_, err = db.Exec(schema)
	if err = errors.Join(err, db.Close()); err != nil {
		return nil, err
	}
	raw, err := os.ReadFile(scratch)
	if err != nil || len(raw) < pageSize {
		return nil, fmt.Errorf("make an empty log: %d bytes: %w", len(raw), err)
	}
	return raw[:pageSize], nil
}

// pages copies the rows of every page that looks like one of the table's:
// those that have their hash, or all.
func (c *rowCopier) pages(source *sql.DB, whole bool) error {
	rows, err := source.QueryContext(c.ctx, "SELECT pgno, data FROM sqlite_dbpage")
	if err != nil {
		return unlessDamage(err)
	}
	defer rows.Close()
	for rows.Next() {
		var number int64
		var page []byte
		if err := rows.Scan(&number, &page); err != nil {
			return unlessDamage(err)
		}
		for _, cell := range leafCells(page) {
			values, ok := c.record(source, page, cell)
			if !ok || whole && !hasItsHash(values) {
				continue
			}
			if err := c.add(values); err != nil {
				return err
			}
		}
	}
	return unlessDamage(rows.Err())
}

// leafCells returns where the cells of a page begin; none, if it is no leaf of
// a table.
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

// record returns the values of the row in a cell.
func (c *rowCopier) record(source *sql.DB, page []byte, at int) ([]any, bool) {
	size, n := varint(page[at:])
	at += n
	seq, m := varint(page[min(at, pageSize):])
	at += m
	if n == 0 || m == 0 || size < columnCount || size > maxPayload || seq <= 0 || seq > maxSeq {
		return nil, false
	}
	local := localSize(int(size))
	if at+local > pageSize {
		return nil, false
	}
	payload := append(make([]byte, 0, size), page[at:at+local]...)
	next := at + local
	for len(payload) < int(size) {
		if next+4 > len(page) {
			return nil, false
		}
		number := binary.BigEndian.Uint32(page[next:])
		page = nil
		err := source.QueryRowContext(c.ctx, "SELECT data FROM sqlite_dbpage WHERE pgno = ?", number).Scan(&page)
		if err != nil || len(page) != pageSize {
			return nil, false
		}
		payload = append(payload, page[4:min(pageSize, 4+int(size)-len(payload))]...)
		next = 0
	}
	return values(seq, payload)
}

// localSize returns how much of a payload is on the leaf itself.
func localSize(size int) int {
	const most, least = pageSize - 35, (pageSize-12)*32/255 - 23
	if size <= most {
		return size
	}
	if k := least + (size-least)%(pageSize-4); k <= most {
		return k
	}
	return least
}

// values decodes a record into the columns of the table.
func values(seq int64, payload []byte) ([]any, bool) {
	length, n := varint(payload)
	if n == 0 || length > int64(len(payload)) || length < int64(n) {
		return nil, false
	}
	header, body := payload[n:length], payload[length:]
	list := []any{seq}
	for first := true; len(header) > 0; first = false {
		kind, n := varint(header)
		if n == 0 {
			return nil, false
		}
		header = header[n:]
		if first { // seq is the key, and NULL in the record
			if kind != 0 {
				return nil, false
			}
			continue
		}
		value, size, ok := decode(kind, body)
		if !ok {
			return nil, false
		}
		list, body = append(list, value), body[size:]
	}
	return list, len(list) == columnCount
}

// decode decodes one value, an integer or a text.
func decode(kind int64, body []byte) (value any, size int, ok bool) {
	sizes := [...]int{1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}
	switch {
	case kind == 8 || kind == 9:
		return kind - 8, 0, true
	case kind >= 1 && kind <= 6 && sizes[kind] <= len(body): //nolint:gosec // 1 to 6
		size = sizes[kind]        //nolint:gosec // 1 to 6
		n := int64(int8(body[0])) //nolint:gosec // two's complement, as SQLite stores it
		for _, b := range body[1:size] {
			n = n<<8 | int64(b)
		}
		return n, size, true
	case kind >= 13 && kind%2 == 1 && (kind-13)/2 <= int64(len(body)):
		size = int((kind - 13) / 2)
		return string(body[:size]), size, true
	}
	return nil, 0, false
}

// varint decodes SQLite's variable-length integer; n is 0 when it is cut.
func varint(b []byte) (value int64, n int) {
	for i := range min(len(b), 9) {
		if i == 8 {
			return value<<8 | int64(b[i]), 9
		}
		value = value<<7 | int64(b[i]&0x7f)
		if b[i] < 0x80 {
			return value, i + 1
		}
	}
	return 0, 0
}

// stored are the values of a row as they are stored.
type stored []any

func (s stored) Scan(dest ...any) error {
	for i, d := range dest {
		number, isNumber := s[i].(int64)
		text, isText := s[i].(string)
		switch d := d.(type) {
		case *int64:
			*d, isText = number, false
		case *int:
			*d, isText = int(number), false
		case *string:
			*d, isNumber = text, false
		}
		if !isNumber && !isText {
			return errDamaged
		}
	}
	return nil
}

// hasItsHash reports whether the row is the one that its hash was made of.
func hasItsHash(values []any) bool {
	r, fields, err := scan(stored(values))
	if err != nil {
		return false
	}
	again := r
	again.chain(r.PrevHash, fields)
	return again.Hash == r.Hash
}

func copyWhole(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = out.ReadFrom(in)
	return errors.Join(err, out.Close())
}
