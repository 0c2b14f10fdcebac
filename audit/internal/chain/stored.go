package chain

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// CanonicalNames returns the names of the columns of RowText.Values, in their order.
func CanonicalNames() []string {
	names := make([]string, len(canonicalColumns))
	for i, c := range canonicalColumns {
		names[i] = c.name
	}
	return names
}

// TextOf returns a row that was read column by column as the text that is hashed.
func TextOf(r *FullRow) RowText {
	return RowText{Seq: r.Seq, row: string(r.Canonical(nil, r.Stored)), Prev: r.PrevHash, Hash: r.Hash, Fields: r.Stored,
		Ts: r.TS.UnixNano(), Strange: true, Values: [len(canonicalColumns)]string{
			r.ID, string(r.Event), r.SessionID, string(r.Source), string(r.Decision), r.Reason, r.ConnectorFQN,
			r.ConnectorVersion, r.Tool, r.Operation, r.Binding, r.Method, r.Scheme, r.Host, strconv.Itoa(r.Port), r.Path,
			r.HTTPVersion, strconv.Itoa(r.Status), strconv.FormatInt(r.RequestBytes, 10),
			strconv.FormatInt(r.ResponseBytes, 10), strconv.Itoa(r.Redactions), strconv.FormatInt(r.DurationUS, 10),
			r.Stamp(),
		}}
}

// HasItsHash reports whether the content of the row has its hash. buffer is memory that it may use, and is returned.
func (r *RowText) HasItsHash(buffer []byte) (bool, []byte) {
	buffer = append(append(buffer[:0], r.Prev...), r.row...)
	sum := sha256.Sum256(buffer)
	var digits [2 * sha256.Size]byte
	hex.Encode(digits[:], sum[:])
	return string(digits[:]) == r.Hash, buffer
}

// Size returns about how many bytes the row has.
func (r *RowText) Size() int { return len(r.row) + len(r.Prev) + len(r.Hash) }

// Event returns what the row records.
func (r *RowText) Event() Event { return Event(r.Values[CanonicalEvent]) }

// ErrAnotherKey is returned for a signed head that is signed by none of the keys.
var ErrAnotherKey = errors.New("it is signed by another key")

// OpenSignedHead returns the head that a note signs, and the name of its key. It must be signed by one of the keys.
func OpenSignedHead(text string, keys []string) (h Head, origin string, err error) {
	s, err := ParseSignedHead(text)
	if err != nil {
		return h, "", err
	}
	ring, err := NewKeyring(keys)
	if err != nil {
		return h, "", err
	}
	switch why := ring.Check(s); {
	case len(why) >= len(anotherKey) && why[:len(anotherKey)] == anotherKey:
		return h, "", ErrAnotherKey
	case why != "":
		return h, "", fmt.Errorf("its signed head %s", why)
	}
	return s.Head, s.Origin, nil
}

// AppendLine appends the row as a line of an export, without its end: the columns in the order of the table, in which
// the time is the third.
func (r *RowText) AppendLine(out []byte) []byte {
	const event, fields = `,"event":`, `,"fields":`
	time := `,"ts":"` + r.Values[canonicalTS] + `"`
	id := strings.Index(r.row, event) // of an id no part can be that: a quotation mark in it is escaped
	end := len(r.row) - len(r.Fields) - len(fields) - 1
	out = append(append(append(out, r.row[:id]...), time...), r.row[id:end-len(time)]...)
	out = append(append(append(out, r.row[end:len(r.row)-1]...), `,"prev_hash":"`...), r.Prev...)
	return append(append(append(out, `","hash":"`...), r.Hash...), `"}`...)
}
