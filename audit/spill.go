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

// A spill file holds the last rows of a session whose log cannot be written,
// such as those of a stream that ends when the disk is full. Its blocks are
// allocated when the session opens the log, so that writing it needs no space.
//
// The file is a header, rows, and zeros, each of the first two a line of JSON.
// The header names the session and the row that the session committed last. The
// sum of a row is the SHA-256 of the sum before it and the row's JSON; that of
// the header begins the chain. A file of zeros holds nothing.

const (
	spillSize = 64 << 10
	// spillEnd is the part of the file that only session.ended, and what was
	// refused until then, may use.
	spillEnd    = 4 << 10
	spillPrefix = "audit.spill-"
)

// errNoSpill is returned for rows that the spill file has no space for, and
// errSpillGone when it was removed: what it holds ends with this process.
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

// spillLine is any other line.
type spillLine struct {
	Sum string          `json:"sum"`
	Row json.RawMessage `json:"row"`
}

// spillRow is a Row without the columns that are empty.
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
}

// spillFile is the spill file of one session that runs: it is locked for as
// long as it is open. Of the leading goroutine.
type spillFile struct {
	path, session string
	file          *os.File
	used          int64
	sum           []byte          // of the last line
	ids           map[string]bool // of the rows that it holds
}

// keep adds a row, unless the file holds it already. after is the newest row
// that this process knows of, for the header. It marks the row.
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

// removed reports whether the file has no name any more, such as when the home
// was removed. One that was moved with its home keeps its rows.
func (s *spillFile) removed() bool {
	info, err := s.file.Stat()
	if err != nil {
		return true
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Nlink == 0
}

// markSpilled marks a row that a spill file held.
func markSpilled(r *Row) {
	marked := make(map[string]any, len(r.Fields)+1)
	for name, v := range r.Fields {
		marked[name] = v
	}
	marked[fieldSpilled] = true
	r.Fields = marked
}

// fieldSpilled marks rows that a spill file held before the log had them.
const fieldSpilled = "spilled"

func chainSpill(sum, row []byte) []byte {
	next := sha256.Sum256(append(bytes.Clone(sum), row...))
	return next[:]
}

// reset drops what the file holds and keeps its blocks.
func (s *spillFile) reset() {
	if s.used == 0 {
		return
	}
	if _, err := s.file.WriteAt(make([]byte, s.used), 0); err != nil {
		return // the rows are in the log: the next session's look finds them there
	}
	s.used, s.sum, s.ids = 0, nil, nil
}

// close removes the file, unless rows of it are not in the log.
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

// spillable reports whether a session's id may be part of a file's name.
func spillable(session string) bool {
	return session != "" && len(session) <= 64 && strings.Trim(session, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}
