package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"syscall"
	"time"
)

// A spill file has the last rows of a session whose log cannot be written, such as that of a stream that ends while
// the disk is full. Its blocks are allocated when the session opens the log, so that writing to it needs no space.
//
// The file is a header, rows and zeros; the header and each row are a line of JSON. The header has the session, and
// the row that the session committed last. The sum of a row is the SHA-256 of the sum before it and the row's JSON;
// the chain begins with the SHA-256 of the header. A file of zeros has no rows.

const (
	spillSize = 64 << 10
	// spillEnd is the part of the file that is reserved for session.ended and for the count of refused requests.
	spillEnd    = 4 << 10
	spillPrefix = "audit.spill-"
)

// errNoSpill is returned for a row for which the spill file has no space, and errSpillGone if the file was removed:
// its rows are lost when this process ends.
var (
	errNoSpill   = errors.New("the spill file is full")
	errSpillGone = errors.New("the spill file was removed")
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
}

// spillFile is the spill file of a running session, locked as long as it is open. It is owned by the leader.
type spillFile struct {
	path, session string
	file          *os.File
	used          int64
	sum           []byte          // of the last line
	ids           map[string]bool // of the rows in the file
}

// keep adds a row, unless the file has it already, and marks it. after is the newest row of the log that this process
// knows, for the header.
func (s *spillFile) keep(r *Row, after head) error {
	if s.removed() {
		return errSpillGone
	}
	if s.ids[r.ID] {
		return nil
	}
	var out []byte
	sum := s.sum
	if s.used == 0 {
		h, err := json.Marshal(spillHeader{1, s.session, after.seq, after.hash})
		if err != nil {
			return err
		}
		first := sha256.Sum256(h)
		out, sum = append(h, '\n'), first[:]
	}
	markSpilled(r)
	plain := *r
	plain.Seq, plain.PrevHash, plain.Hash, plain.TS = 0, "", "", r.TS.UTC()
	raw, err := json.Marshal(spillRow(plain))
	if err != nil {
		return err
	}
	next := chainSpill(sum, raw)
	line, err := json.Marshal(spillLine{hex.EncodeToString(next), raw})
	if err != nil {
		return err
	}
	out = append(append(out, line...), '\n')
	room := int64(spillSize)
	if r.Event != EventSessionEnded {
		room -= spillEnd
	}
	if s.used+int64(len(out)) > room {
		return errNoSpill
	}
	if _, err := s.file.WriteAt(out, s.used); err != nil {
		return err
	}
	s.used, s.sum = s.used+int64(len(out)), next
	if s.ids == nil {
		s.ids = map[string]bool{}
	}
	s.ids[r.ID] = true
	return nil
}

// removed reports whether the file has no name any more, for example because the home was removed. A file that was
// moved with its home still keeps its rows.
func (s *spillFile) removed() bool {
	info, err := s.file.Stat()
	if err != nil {
		return true
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Nlink == 0
}

// markSpilled sets fieldSpilled of a row.
func markSpilled(r *Row) {
	marked := make(map[string]any, len(r.Fields)+1)
	for name, v := range r.Fields {
		marked[name] = v
	}
	marked[fieldSpilled] = true
	if r.RequestID != "" {
		marked[requestIDName] = r.RequestID
	}
	r.Fields = marked
}

// fieldSpilled is the field of a row that was in a spill file before it was in the log.
const fieldSpilled = "spilled"

// chainSpill returns the sum of a row after the sum before it.
func chainSpill(sum, row []byte) []byte {
	next := sha256.Sum256(append(bytes.Clone(sum), row...))
	return next[:]
}

// reset removes the rows of the file and keeps its blocks.
func (s *spillFile) reset() {
	if s.used == 0 {
		return
	}
	if _, err := s.file.WriteAt(make([]byte, s.used), 0); err != nil {
		return // harmless: the rows are in the log, and adopting the file skips them
	}
	s.used, s.sum, s.ids = 0, nil, nil
}

// close removes the file, unless it has rows that are not in the log.
func (s *spillFile) close(needed bool) {
	if !needed || s.used == 0 {
		s.remove()
		return
	}
	_ = s.file.Close()
}

func (s *spillFile) remove() {
	_ = os.Remove(s.path)
	_ = s.file.Close()
}

// spillable reports whether the id of a session can be part of a file name.
func spillable(session string) bool {
	return session != "" && len(session) <= 64 && strings.Trim(session, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}
