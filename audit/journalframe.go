package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"
)

// A frame of a journal is a head, a row, a sum and a line end. The head is a magic number, which no row contains
// because it is not UTF-8, and the length of the row, 4 bytes each. The row is the one that is hashed, without its
// seq, which it gets in the database. The sum is the SHA-256 of the sum before it, a line end, the head and the row:
// all that is in the file between the beginnings of two sums.

const (
	frameMagic = 0xf5feffc1
	frameHead  = 8
	sumSize    = sha256.Size
	// framePrefix is what precedes a frame and is part of its sum.
	framePrefix = sumSize + 1
	// frameSpace is the size of a frame without its row.
	frameSpace = frameHead + framePrefix
	// maxFrame bounds the size of a row.
	maxFrame = 32 << 20
)

var errLargeRow = errors.New("the row is too large")

// appendFrame appends the frame of r, without its sum.
func appendFrame(out []byte, r *Row) ([]byte, error) {
	start := len(out)
	out = append(out, make([]byte, frameHead)...)
	out, err := r.appendBody(append(out, '{'))
	if err != nil {
		return nil, err
	}
	if len(out)-start-frameHead > maxFrame {
		return nil, errLargeRow
	}
	return endFrame(out, start), nil
}

// endFrame sets the head of the frame that begins at start, and appends space for its sum and the line end.
func endFrame(out []byte, start int) []byte {
	binary.LittleEndian.PutUint32(out[start:], frameMagic)
	binary.LittleEndian.PutUint32(out[start+4:], uint32(len(out)-start-frameHead)) //nolint:gosec // maxFrame bounds it
	out = append(out, make([]byte, sumSize)...)
	return append(out, '\n')
}

// chainFrames sets the sums of the frames behind sum, which it sets to the last one, and returns their number. The
// frames begin at framePrefix.
func chainFrames(frames []byte, sum *[sumSize]byte) (n int) {
	copy(frames, sum[:])
	frames[sumSize] = '\n'
	for at := framePrefix; at < len(frames); n++ {
		end := at + frameHead + int(binary.LittleEndian.Uint32(frames[at+4:]))
		*sum = sha256.Sum256(frames[at-framePrefix : end])
		copy(frames[end:], sum[:])
		at = end + framePrefix
	}
	return n
}

// frameEnd returns where the frame at the beginning of raw ends, and false if it has no head of a frame. The end may
// be beyond that of raw.
func frameEnd(raw []byte) (int, bool) {
	if len(raw) < frameHead || binary.LittleEndian.Uint32(raw) != frameMagic {
		return 0, false
	}
	n := binary.LittleEndian.Uint32(raw[4:])
	return int(n) + frameSpace, n >= 2 && n <= maxFrame
}

// checkFrame returns the row of the frame at raw[at:end], and false if its sum or its line end is not right. The sum
// before it is in raw too.
func checkFrame(raw []byte, at, end int) ([]byte, bool) {
	tail := end - framePrefix
	sum := sha256.Sum256(raw[at-framePrefix : tail])
	return raw[at+frameHead : tail], bytes.Equal(sum[:], raw[tail:end-1]) && raw[end-1] == '\n'
}

// parseSoon returns the rows of a batch that nothing waits for.
func parseSoon(b batch) (rows []*Row) {
	for _, at := range b.soon {
		end, _ := frameEnd(b.frames[at:])
		r, raw := new(Row), new(rawRow)
		if r.parse(string(b.frames[at+frameHead:at+end-framePrefix]), raw) == nil {
			rows = append(rows, r)
		}
	}
	return rows
}

// rawRow is what a row of a journal has instead of Fields.
type rawRow struct {
	body   string // the row as it is hashed, without its seq
	ts     string
	fields string
	// late is how long the row may have waited in the journal: rows that other processes wrote meanwhile may precede it.
	late time.Duration
}

// errRow is returned for a row that appendBody did not write.
var errRow = errors.New("it is not a row")

// parse sets r to the row of body, with raw as its content.
func (r *Row) parse(body string, raw *rawRow) error {
	c := rowParser{rest: body}
	*r = Row{
		ID: c.text(`{"id":`), Event: Event(c.text(`,"event":`)), SessionID: c.text(`,"session_id":`),
		Source: Source(c.text(`,"source":`)), Decision: Decision(c.text(`,"decision":`)), Reason: c.text(`,"reason":`),
		ConnectorFQN: c.text(`,"connector_fqn":`), ConnectorVersion: c.text(`,"connector_version":`),
		Tool: c.text(`,"tool":`), Operation: c.text(`,"operation":`), Binding: c.text(`,"binding":`),
		Method: c.text(`,"method":`), Scheme: c.text(`,"scheme":`), Host: c.text(`,"host":`),
		Port: int(c.number(`,"port":`)), Path: c.text(`,"path":`), HTTPVersion: c.text(`,"http_version":`),
		Status: int(c.number(`,"status":`)), RequestBytes: c.number(`,"request_bytes":`),
		ResponseBytes: c.number(`,"response_bytes":`), Redactions: int(c.number(`,"redactions":`)),
		DurationUS: c.number(`,"duration_us":`),
	}
	stamp := c.text(`,"ts":`)
	ts, err := time.Parse(timeFormat, stamp)
	fields, ok := strings.CutPrefix(c.rest, `,"fields":{`)
	if c.broken || err != nil || !ok || !strings.HasSuffix(fields, "}}") {
		return errRow
	}
	r.TS, r.raw = ts, raw
	*raw = rawRow{body: body, ts: stamp, fields: fields[:len(fields)-1]}
	raw.fields = body[len(body)-len(raw.fields)-2 : len(body)-1] // with its opening brace
	if c.escaped {
		// What a column has instead of bytes that are not UTF-8 is hashed as Verify will find it.
		out := r.appendColumns(append(make([]byte, 0, len(body)), '{'))
		raw.body = string(append(append(out, raw.fields...), '}'))
	}
	return nil
}

// rowParser reads the columns of a row in the order of appendBody.
type rowParser struct {
	rest    string
	broken  bool
	escaped bool // a text has an escape
}

// value drops name, and returns what is behind it.
func (c *rowParser) value(name string) string {
	rest, ok := strings.CutPrefix(c.rest, name)
	c.broken = c.broken || !ok
	return rest
}

func (c *rowParser) number(name string) int64 {
	rest := c.value(name)
	end := strings.IndexByte(rest, ',')
	if end < 0 {
		c.broken = true
		return 0
	}
	n, err := strconv.ParseInt(rest[:end], 10, 64)
	c.broken = c.broken || err != nil
	c.rest = rest[end:]
	return n
}

func (c *rowParser) text(name string) string {
	rest := c.value(name)
	if c.broken || rest == "" || rest[0] != '"' {
		c.broken = true
		return ""
	}
	end := 1 + strings.IndexByte(rest[1:], '"')
	if end > 0 && strings.IndexByte(rest[1:end], '\\') < 0 {
		c.rest = rest[end+1:]
		return rest[1:end]
	}
	return c.unescape(rest)
}

// unescape is text for a string with an escape.
func (c *rowParser) unescape(rest string) (s string) {
	d := json.NewDecoder(strings.NewReader(rest))
	c.broken = d.Decode(&s) != nil
	c.rest, c.escaped = rest[d.InputOffset():], true
	return s
}

// setField sets a field of a row that may be one of a journal.
func (r *Row) setField(name string, value any) error {
	if r.raw == nil {
		r.Fields = maps.Clone(r.Fields)
		if r.Fields == nil {
			r.Fields = map[string]any{}
		}
		r.Fields[name] = value
		return nil
	}
	if err := r.unpack(); err != nil {
		return err
	}
	return r.setField(name, value)
}

// unpack replaces what the journal has of a row by Fields.
func (r *Row) unpack() error {
	if r.raw == nil {
		return nil
	}
	d := json.NewDecoder(strings.NewReader(r.raw.fields))
	d.UseNumber() // numbers stay as they are written
	var fields map[string]any
	if err := d.Decode(&fields); err != nil {
		return fmt.Errorf("read the fields of an audit row: %w", err)
	}
	r.Fields, r.raw = fields, nil
	return nil
}
