package rebuild

import (
	"database/sql"
	"encoding/binary"

	"github.com/ALRubinger/aileron/audit/internal/table"
)

// record returns the values of the row in the cell at an offset of a page.
func (c *rowCopier) record(source *sql.DB, page []byte, at int) ([]any, bool) {
	size, n := varint(page[at:])
	at += n
	seq, m := varint(page[min(at, pageSize):])
	at += m
	if n == 0 || m == 0 || size < table.ColumnCount || size > maxPayload || seq <= 0 || seq > maxSeq {
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

// localSize returns how many bytes of a payload are on the leaf itself; the rest is on overflow pages.
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
		if first { // seq is the key, so the record has NULL
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
	return list, len(list) == table.ColumnCount
}

// decode decodes one integer or text of the given serial type, and returns its size.
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

// varint decodes SQLite's variable-length integer; n is 0 if it is cut off.
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

// stored is a row's values as they are stored, which scan can read.
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
			return table.ErrDamaged
		}
	}
	return nil
}

// matchesHash reports whether the hash of a row is that of its content.
func matchesHash(values []any) bool {
	r, fields, err := table.Scan(stored(values))
	if err != nil {
		return false
	}
	again := r
	again.Chain(r.PrevHash, fields)
	return again.Hash == r.Hash
}
