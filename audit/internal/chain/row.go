// Package chain is what makes rows evidence: their canonical bytes, the hash that chains each to the one before, the
// heads that are kept outside the database, signed heads, and the walk that compares them all. It knows bytes, hashes
// and the small files beside the database, and no SQLite.
//
// Begin with [Row]: [Row.Complete] chains a row to a [Head]. [HeadFile] keeps heads, [HeadSigner] signs them, [Walk]
// checks rows one by one, and [VerifyExport] those of an export.
package chain

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/oklog/ulid/v2"
)

// Row is one event. Its fields are the columns of the table, in their order.
type Row struct {
	Seq              int64          `json:"seq"`
	ID               string         `json:"id"` // a ULID
	TS               time.Time      `json:"ts"` // UTC
	Event            Event          `json:"event"`
	SessionID        string         `json:"session_id"`
	Source           Source         `json:"source"`
	Decision         Decision       `json:"decision"`
	Reason           string         `json:"reason"`
	ConnectorFQN     string         `json:"connector_fqn"`
	ConnectorVersion string         `json:"connector_version"`
	Tool             string         `json:"tool"`
	Operation        string         `json:"operation"`
	Binding          string         `json:"binding"`
	Method           string         `json:"method"`
	Scheme           string         `json:"scheme"`
	Host             string         `json:"host"`
	Port             int            `json:"port"`
	Path             string         `json:"path"`
	HTTPVersion      string         `json:"http_version"`
	Status           int            `json:"status"`
	RequestBytes     int64          `json:"request_bytes"`
	ResponseBytes    int64          `json:"response_bytes"`
	Redactions       int            `json:"redactions"`
	DurationUS       int64          `json:"duration_us"`
	Fields           map[string]any `json:"fields"`
	PrevHash         string         `json:"prev_hash"`
	Hash             string         `json:"hash"`

	// RequestID, if not empty, is written as Fields["request_id"]. It saves the map of a row that has no other field. A
	// row that was read has it in Fields only.
	RequestID string `json:"-"`

	raw *RawRow // what a row of a journal has instead of Fields; nil: it is not one
}

// NewID returns a ULID. The ids that one process creates in one millisecond are not ordered: rows are ordered by seq.
func NewID() string {
	var id ulid.ULID
	_ = id.SetTime(ulid.Now()) // it fails only after the year 10889
	//nolint:gosec // ids must be unique, not secret: the generator of the runtime is seeded by the system
	binary.BigEndian.PutUint16(id[6:], uint16(rand.Uint32()))
	binary.BigEndian.PutUint64(id[8:], rand.Uint64()) //nolint:gosec // as above
	var text [ulid.EncodedSize]byte
	_ = id.MarshalTextTo(text[:])
	return string(text[:])
}

// IsID reports whether text has the form of an id of [NewID].
func IsID(text string) bool {
	_, ok := IdTime(text)
	return ok
}

// IdTime returns the time of an id of NewID, and false if it is not one.
func IdTime(id string) (time.Time, bool) {
	u, err := ulid.ParseStrict(id)
	return ulid.Time(u.Time()), err == nil
}

// ZeroHash is the prev_hash of the first row.
const ZeroHash = "0000000000000000000000000000000000000000000000000000000000000000"

const TimeFormat = "2006-01-02T15:04:05.000000000Z"

// Stamp returns the time of the row as it is stored and hashed.
func (r *Row) Stamp() string {
	if r.raw != nil {
		return r.raw.ts
	}
	return string(AppendTime(make([]byte, 0, len(TimeFormat)), r.TS))
}

// AppendTime appends t in TimeFormat.
func AppendTime(out []byte, t time.Time) []byte {
	t = t.UTC()
	year, month, day := t.Date()
	if year < 0 || year > 9999 {
		return t.AppendFormat(out, TimeFormat)
	}
	hour, minute, second := t.Clock()
	digits := func(n, width int, end byte) {
		out = append(out, "000000000"[:width]...)
		for at := len(out) - 1; n > 0; at-- {
			out[at], n = byte('0'+n%10), n/10
		}
		out = append(out, end)
	}
	digits(year, 4, '-')
	digits(int(month), 2, '-')
	digits(day, 2, 'T')
	digits(hour, 2, ':')
	digits(minute, 2, ':')
	digits(second, 2, '.')
	digits(t.Nanosecond(), 9, 'Z')
	return out
}

// Complete sets the columns that are still empty, chains the row to the newest row of the log, and returns its fields
// as JSON. If its time is before that row's, the row is marked and its time kept.
func (r *Row) Complete(newest Head) (fields string, err error) {
	r.Seq = newest.Seq + 1
	r.Begin()
	// Rows of two processes may be out of order by a second.
	slack := time.Second
	if r.raw != nil {
		slack += r.raw.Late
	}
	if r.TS.Before(newest.Ts.Add(-slack)) && r.Fields[FieldSpilled] != true {
		if err := r.SetField("clock", "backwards"); err != nil {
			return "", err
		}
	}
	if r.raw != nil {
		r.chainBody(newest.Hash, r.raw.body)
		return r.raw.fields, nil
	}
	raw, err := r.AppendFields(make([]byte, 0, 256))
	if err != nil {
		return "", err
	}
	fields = string(raw)
	r.Chain(newest.Hash, fields)
	return fields, nil
}

// MarshalJSON returns the row as an object of its columns, with ts as it is hashed.
func (r Row) MarshalJSON() ([]byte, error) {
	type columns Row
	raw, err := json.Marshal(columns(r))
	if err != nil {
		return nil, err
	}
	const name = `"ts":"` // a text has no quotation mark that is not escaped
	at := bytes.Index(raw, []byte(name)) + len(name)
	end := at + bytes.IndexByte(raw[at:], '"')
	return slices.Replace(raw, at, end, AppendTime(nil, r.TS)...), nil
}

// Begin sets the columns that a row has when it is appended.
func (r *Row) Begin() {
	if r.ID == "" {
		r.ID = NewID()
	}
	if r.TS.IsZero() {
		r.TS = time.Now()
	}
	r.TS = r.TS.UTC()
}

// Chain sets the hashes of the row after prev: SHA-256 of the 64 hexadecimal digits of prev and the canonical row.
// fields is the stored JSON.
func (r *Row) Chain(prev, fields string) {
	r.PrevHash, r.Hash = prev, ""
	sum := sha256.Sum256(r.Canonical(append(make([]byte, 0, 1024), prev...), fields))
	r.Hash = hex.EncodeToString(sum[:])
}

// chainBody is chain for a row of which body is the canonical form without its seq.
func (r *Row) chainBody(prev, body string) {
	r.PrevHash = prev
	out := strconv.AppendInt(append(append(make([]byte, 0, 1536), prev...), `{"seq":`...), r.Seq, 10)
	sum := sha256.Sum256(append(append(out, ','), body[1:]...))
	var digits [2 * sha256.Size]byte
	hex.Encode(digits[:], sum[:])
	r.Hash = string(digits[:])
}

// Canonical appends the row as it is hashed: one JSON object without white space, with every column but ts, fields,
// prev_hash and hash in the order of the table, then ts (RFC 3339, nine digits, UTC) and fields (keys sorted).
// Strings are escaped as encoding/json does it: <, > and & as \u003c, \u003e and \u0026.
func (r *Row) Canonical(out []byte, fields string) []byte {
	out = strconv.AppendInt(append(out, `{"seq":`...), r.Seq, 10)
	out = r.appendColumns(append(out, ','))
	return append(append(out, fields...), '}')
}

// AppendBody appends the canonical row from its second column on.
func (r *Row) AppendBody(out []byte) ([]byte, error) {
	out, err := r.AppendFields(r.appendColumns(out))
	return append(out, '}'), err
}

// appendColumns appends the columns of the canonical row behind seq, and the name of the fields.
func (r *Row) appendColumns(out []byte) []byte {
	out = appendString(append(out, `"id":`...), r.ID)
	out = appendString(append(out, `,"event":`...), string(r.Event))
	out = appendString(append(out, `,"session_id":`...), r.SessionID)
	out = appendString(append(out, `,"source":`...), string(r.Source))
	out = appendString(append(out, `,"decision":`...), string(r.Decision))
	out = appendString(append(out, `,"reason":`...), r.Reason)
	out = appendString(append(out, `,"connector_fqn":`...), r.ConnectorFQN)
	out = appendString(append(out, `,"connector_version":`...), r.ConnectorVersion)
	out = appendString(append(out, `,"tool":`...), r.Tool)
	out = appendString(append(out, `,"operation":`...), r.Operation)
	out = appendString(append(out, `,"binding":`...), r.Binding)
	out = appendString(append(out, `,"method":`...), r.Method)
	out = appendString(append(out, `,"scheme":`...), r.Scheme)
	out = appendString(append(out, `,"host":`...), r.Host)
	out = strconv.AppendInt(append(out, `,"port":`...), int64(r.Port), 10)
	out = appendString(append(out, `,"path":`...), r.Path)
	out = appendString(append(out, `,"http_version":`...), r.HTTPVersion)
	out = strconv.AppendInt(append(out, `,"status":`...), int64(r.Status), 10)
	out = strconv.AppendInt(append(out, `,"request_bytes":`...), r.RequestBytes, 10)
	out = strconv.AppendInt(append(out, `,"response_bytes":`...), r.ResponseBytes, 10)
	out = strconv.AppendInt(append(out, `,"redactions":`...), int64(r.Redactions), 10)
	out = strconv.AppendInt(append(out, `,"duration_us":`...), r.DurationUS, 10)
	out = AppendTime(append(out, `,"ts":"`...), r.TS)
	return append(out, `","fields":`...)
}

// AppendFields appends the fields as they are stored.
func (r *Row) AppendFields(out []byte) ([]byte, error) {
	out, err := AppendObject(out, r.Fields, r.RequestID)
	if err != nil {
		return nil, fmt.Errorf("write the fields of an audit row: %w", err)
	}
	return out, nil
}

// StoredFields returns the fields as they are stored.
func (r *Row) StoredFields() (string, error) {
	if r.raw != nil {
		return r.raw.fields, nil
	}
	raw, err := r.AppendFields(nil)
	return string(raw), err
}

// FieldSpilled is the field of a row that was in a journal while the log could not be written, or when its session was
// killed.
const FieldSpilled = "spilled"

// RequestIDName is the name of the field that has Row.RequestID.
const RequestIDName = "request_id"

// AppendObject appends m as encoding/json would, but for text that is not UTF-8, with request, unless it is empty, as
// its request_id.
func AppendObject(out []byte, m map[string]any, request string) ([]byte, error) {
	var space [16]string
	names := space[:0]
	for name := range m {
		if name != RequestIDName || request == "" {
			names = append(names, name)
		}
	}
	if request != "" {
		names = append(names, RequestIDName)
	}
	slices.Sort(names)
	out = append(out, '{')
	for i, name := range names {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(appendText(out, name), ':')
		if request != "" && name == RequestIDName {
			out = appendText(out, request)
			continue
		}
		var err error
		if out, err = appendValue(out, m[name]); err != nil {
			return nil, err
		}
	}
	return append(out, '}'), nil
}

// appendValue appends v as encoding/json would, with sorted names, but for text that is not UTF-8.
func appendValue(out []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case string:
		return appendText(out, v), nil
	case bool:
		return strconv.AppendBool(out, v), nil
	case int:
		return strconv.AppendInt(out, int64(v), 10), nil
	case int64:
		return strconv.AppendInt(out, v, 10), nil
	case []string:
		if v == nil {
			break
		}
		out = append(out, '[')
		for i, s := range v {
			if i > 0 {
				out = append(out, ',')
			}
			out = appendText(out, s)
		}
		return append(out, ']'), nil
	}
	raw, err := otherValue(v)
	return append(out, raw...), err
}

// otherValue returns a value of any other type. encoding/json writes the names of a struct in the order of its fields,
// and bytes that are not UTF-8 otherwise than the character that a reader gets for them: so what it wrote is read and
// written once more. No recursion leads back to appendValue: the fields of most rows stay on the stack.
func otherValue(v any) ([]byte, error) {
	raw, err := json.Marshal(v)
	if err != nil || !strings.ContainsRune(`{["`, rune(raw[0])) {
		return raw, err
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var plain any
	if err := d.Decode(&plain); err != nil {
		return nil, err
	}
	return json.Marshal(plain)
}

// appendText appends the text of a field. encoding/json writes a byte that is not UTF-8 as \ufffd, and the character
// that a reader gets for it otherwise: it is replaced before, so that the row of an export has the same hash.
func appendText(out []byte, s string) []byte {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\ufffd")
	}
	return appendString(out, s)
}

// appendString appends s as encoding/json would.
func appendString(out []byte, s string) []byte {
	for i := range len(s) {
		if needsEscape[s[i]] {
			raw, _ := json.Marshal(s) // a string never fails
			return append(out, raw...)
		}
	}
	return append(append(append(out, '"'), s...), '"')
}

// needsEscape reports whether appendString may write a byte otherwise than it is.
var needsEscape = func() (escaped [256]bool) {
	for c := range escaped {
		escaped[c] = c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&'
	}
	return escaped
}()
