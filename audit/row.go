package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

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
}

// NewID returns a ULID. The ids that one process creates in one millisecond are not ordered: rows are ordered by seq.
func NewID() string { return ulid.Make().String() }

// idTime returns the time of an id of NewID, and false if it is not one.
func idTime(id string) (time.Time, bool) {
	u, err := ulid.ParseStrict(id)
	return ulid.Time(u.Time()), err == nil
}

// zeroHash is the prev_hash of the first row.
const zeroHash = "0000000000000000000000000000000000000000000000000000000000000000"

const timeFormat = "2006-01-02T15:04:05.000000000Z"

// stamp returns the time of the row as it is stored and hashed.
func (r *Row) stamp() string { return r.TS.UTC().Format(timeFormat) }

// complete sets the columns that are still empty, chains the row to the newest row of the log, and returns its fields
// as JSON. If its time is before that row's, the row is marked and its time kept.
func (r *Row) complete(newest head) (fields string, err error) {
	r.Seq = newest.seq + 1
	if r.ID == "" {
		r.ID = NewID()
	}
	if r.TS.IsZero() {
		r.TS = time.Now()
	}
	r.TS = r.TS.UTC()
	// Rows of two processes may be out of order by a second.
	if r.TS.Before(newest.ts.Add(-time.Second)) && r.Fields[fieldSpilled] != true {
		marked := make(map[string]any, len(r.Fields)+1)
		maps.Copy(marked, r.Fields)
		marked["clock"] = "backwards"
		r.Fields = marked
	}
	raw, err := appendObject(nil, r.Fields)
	if err != nil {
		return "", fmt.Errorf("write the fields of an audit row: %w", err)
	}
	fields = string(raw)
	r.chain(newest.hash, fields)
	return fields, nil
}

// chain sets the hashes of the row after prev: SHA-256 of the 64 hexadecimal digits of prev and the canonical row.
// fields is the stored JSON.
func (r *Row) chain(prev, fields string) {
	r.PrevHash, r.Hash = prev, ""
	sum := sha256.Sum256(r.canonical(append(make([]byte, 0, 1024), prev...), fields))
	r.Hash = hex.EncodeToString(sum[:])
}

// canonical appends the row as it is hashed: one JSON object without white space, with every column but ts, fields,
// prev_hash and hash in the order of the table, then ts (RFC 3339, nine digits, UTC) and fields (keys sorted).
// Strings are escaped as encoding/json does it: <, > and & as \u003c, \u003e and \u0026.
func (r *Row) canonical(out []byte, fields string) []byte {
	number := func(name string, n int64) {
		out = append(append(append(out, ',', '"'), name...), '"', ':')
		out = strconv.AppendInt(out, n, 10)
	}
	text := func(name, value string) {
		out = append(append(append(out, ',', '"'), name...), '"', ':')
		out = appendString(out, value)
	}
	start := len(out)
	number("seq", r.Seq)
	out[start] = '{'
	text("id", r.ID)
	text("event", string(r.Event))
	text("session_id", r.SessionID)
	text("source", string(r.Source))
	text("decision", string(r.Decision))
	text("reason", r.Reason)
	text("connector_fqn", r.ConnectorFQN)
	text("connector_version", r.ConnectorVersion)
	text("tool", r.Tool)
	text("operation", r.Operation)
	text("binding", r.Binding)
	text("method", r.Method)
	text("scheme", r.Scheme)
	text("host", r.Host)
	number("port", int64(r.Port))
	text("path", r.Path)
	text("http_version", r.HTTPVersion)
	number("status", int64(r.Status))
	number("request_bytes", r.RequestBytes)
	number("response_bytes", r.ResponseBytes)
	number("redactions", int64(r.Redactions))
	number("duration_us", r.DurationUS)
	text("ts", r.stamp())
	out = append(append(out, `,"fields":`...), fields...)
	return append(out, '}')
}

// appendObject appends m as encoding/json would.
func appendObject(out []byte, m map[string]any) ([]byte, error) {
	names := make([]string, 0, 8)
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	out = append(out, '{')
	for i, name := range names {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(appendString(out, name), ':')
		if s, ok := m[name].(string); ok {
			out = appendString(out, s)
			continue
		}
		raw, err := json.Marshal(m[name])
		if err != nil {
			return nil, err
		}
		out = append(out, raw...)
	}
	return append(out, '}'), nil
}

// appendString appends s as encoding/json would.
func appendString(out []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			raw, _ := json.Marshal(s) // a string never fails
			return append(out, raw...)
		}
	}
	return append(append(append(out, '"'), s...), '"')
}
