package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"strings"
	"time"
)

// A spill file has the last rows of a session whose log could not be written. Earlier versions wrote it, where a
// session now has a journal; those that they left are still added to the log.
//
// The file is a header, rows and zeros; the header and each row are a line of JSON. The header has the session, and
// the row that the session committed last. The sum of a row is the SHA-256 of the sum before it and the row's JSON;
// the chain begins with the SHA-256 of the header. A file of zeros has no rows.

const (
	spillSize   = 64 << 10
	spillPrefix = "audit.spill-"
)

// spillHeader is the first line of a spill file.
type spillHeader struct {
	Version   int    `json:"aileron_spill"`
	Session   string `json:"session"`
	AfterSeq  int64  `json:"after_seq"`
	AfterHash string `json:"after_hash"`
}

// spillLine is any other line of a spill file.
type spillLine struct {
	Sum string          `json:"sum"`
	Row json.RawMessage `json:"row"`
}

// spillRow is a Row that omits empty columns.
type spillRow struct {
	Seq              int64          `json:"seq,omitempty"`
	ID               string         `json:"id"`
	TS               time.Time      `json:"ts"`
	Event            Event          `json:"event"`
	SessionID        string         `json:"session_id"`
	Source           Source         `json:"source,omitempty"`
	Decision         Decision       `json:"decision,omitempty"`
	Reason           string         `json:"reason,omitempty"`
	ConnectorFQN     string         `json:"connector_fqn,omitempty"`
	ConnectorVersion string         `json:"connector_version,omitempty"`
	Tool             string         `json:"tool,omitempty"`
	Operation        string         `json:"operation,omitempty"`
	Binding          string         `json:"binding,omitempty"`
	Method           string         `json:"method,omitempty"`
	Scheme           string         `json:"scheme,omitempty"`
	Host             string         `json:"host,omitempty"`
	Port             int            `json:"port,omitempty"`
	Path             string         `json:"path,omitempty"`
	HTTPVersion      string         `json:"http_version,omitempty"`
	Status           int            `json:"status,omitempty"`
	RequestBytes     int64          `json:"request_bytes,omitempty"`
	ResponseBytes    int64          `json:"response_bytes,omitempty"`
	Redactions       int            `json:"redactions,omitempty"`
	DurationUS       int64          `json:"duration_us,omitempty"`
	Fields           map[string]any `json:"fields,omitempty"`
	PrevHash         string         `json:"prev_hash,omitempty"`
	Hash             string         `json:"hash,omitempty"`
	RequestID        string         `json:"-"`

	removal *removal
	raw     *rawRow
}

// fieldSpilled is the field of a row that was in a journal or a spill file while the log could not be written, or when
// its session was killed.
const fieldSpilled = "spilled"

// chainSpill returns the sum of a row after the sum before it.
func chainSpill(sum, row []byte) []byte {
	next := sha256.Sum256(append(bytes.Clone(sum), row...))
	return next[:]
}

// spillable reports whether the id of a session can be part of a file name.
func spillable(session string) bool {
	return session != "" && len(session) <= 64 && strings.Trim(session, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}
