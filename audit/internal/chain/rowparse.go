package chain

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"
)

// RawRow is what a row of a journal has instead of Fields.
type RawRow struct {
	body   string // the row as it is hashed, without its seq
	ts     string
	fields string
	// Late is how long the row may have waited in the journal: rows that other processes wrote meanwhile may precede it.
	Late time.Duration
}

// errRow is returned for a row that AppendBody did not write.
var errRow = errors.New("it is not a row")

// Parse sets r to the row of body, with raw as its content.
func (r *Row) Parse(body string, raw *RawRow) error {
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
	ts, err := time.Parse(TimeFormat, stamp)
	fields, ok := strings.CutPrefix(c.rest, `,"fields":{`)
	if c.broken || err != nil || !ok || !strings.HasSuffix(fields, "}}") {
		return errRow
	}
	r.TS, r.raw = ts, raw
	*raw = RawRow{body: body, ts: stamp, fields: fields[:len(fields)-1]}
	raw.fields = body[len(body)-len(raw.fields)-2 : len(body)-1] // with its opening brace
	if c.escaped {
		// What a column has instead of bytes that are not UTF-8 is hashed as Verify will find it.
		out := r.appendColumns(append(make([]byte, 0, len(body)), '{'))
		raw.body = string(append(append(out, raw.fields...), '}'))
	}
	return nil
}

// rowParser reads the columns of a row in the order of AppendBody.
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

// SetField sets a field of a row that may be one of a journal.
func (r *Row) SetField(name string, value any) error {
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
	return r.SetField(name, value)
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

// WithoutFields returns the row without its fields.
func (r *Row) WithoutFields() Row {
	bare := *r
	bare.Fields, bare.raw = nil, nil
	return bare
}
