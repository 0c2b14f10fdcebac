package learn

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Note is what a learning session notes of a request besides its audit rows. No field is for a value of a request; what
// looks like a name or a literal of a path, and is a value, is not told apart ([KindOf]).
type Note struct {
	Method string   `json:"method"`
	Host   string   `json:"host"`
	Port   int      `json:"port"`
	Path   string   `json:"path"`                   // its Shape
	Query  []string `json:"query,omitempty"`        // names, sorted
	Odd    bool     `json:"odd,omitempty"`          // the query has names that are not noted
	Type   string   `json:"content_type,omitempty"` // of the body, without parameters
	Full   bool     `json:"full,omitempty"`         // the last line of a file without room for more
}

// Bounds of the file of a session.
const (
	maxNotes     = 20000
	maxNotesSize = 4 << 20
	maxNames     = 64 // of a query
	maxName      = 64 // bytes
)

const notesSuffix = ".jsonl"

// NotesPath returns the file of a session's notes in a home.
func NotesPath(home, session string) string { return filepath.Join(home, "learn", session+notesSuffix) }

// Notes writes the file of a session. A nil *Notes notes nothing. Its methods are safe for concurrent use.
type Notes struct {
	mu   sync.Mutex
	file *os.File
	seen map[string]bool
	size int
	err  error // why it notes no more
}

// CreateNotes creates the file, which only its owner can read, and the directory that it is in.
func CreateNotes(path string) (*Notes, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("create the directory of learning sessions: %w", err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("create the notes of the session: %w", err)
	}
	return &Notes{file: f, seen: map[string]bool{}}, nil
}

// errFull is the error of notes for which there is no more room.
var errFull = errors.New("it has no room for more")

// Add notes a request by its path and query as on the wire, and the Content-Type of its body. What was noted before is
// not noted again.
func (n *Notes) Add(method, host string, port int, path, query, contentType string) {
	if n == nil {
		return
	}
	note := Note{Method: method, Host: host, Port: port, Path: Shape(path), Type: mediaType(contentType)}
	note.Query, note.Odd = QueryNames(query)
	line, err := json.Marshal(note)
	n.mu.Lock()
	defer n.mu.Unlock()
	if err != nil || n.err != nil || n.seen[string(line)] {
		return
	}
	if len(n.seen) >= maxNotes || n.size+len(line) > maxNotesSize {
		line, n.err = []byte(`{"full":true}`), errFull
	}
	n.seen[string(line)] = true
	n.size += len(line) + 1
	if _, err := n.file.Write(append(line, '\n')); err != nil {
		n.err = err
	}
}

// Close closes the file, whose time is that of the end from then on ([PruneNotes]). The error is that of the first note
// that could not be written.
func (n *Notes) Close() error {
	if n == nil {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	now := time.Now()
	_ = os.Chtimes(n.file.Name(), now, now) // else it is that of its last note
	if n.err == nil {
		n.err = errors.New("it is closed")
		return n.file.Close()
	}
	return errors.Join(n.err, n.file.Close())
}

// mediaType returns the media type of a Content-Type in lower case, without its parameters; "" if it has none.
func mediaType(text string) string {
	if len(text) > 256 {
		return ""
	}
	kind, _, err := mime.ParseMediaType(text)
	if err != nil || !strings.Contains(kind, "/") || len(kind) > maxName ||
		!isPlainName(strings.Replace(kind, "/", "", 1)) {
		return ""
	}
	return kind
}

// QueryNames returns the names in a query as on the wire, sorted. odd is true if there are others that must not be
// written down: they look like secrets, are no plain names, or are too many. A part without a value is none of a name,
// nor is a long one with an empty value, which may be base64 with its padding.
func QueryNames(query string) (names []string, odd bool) {
	for pair := range strings.SplitSeq(query, "&") {
		name, value, assigned := strings.Cut(pair, "=")
		switch {
		case pair == "":
		case !assigned, len(name) > maxRun && strings.Trim(value, "=") == "":
			odd = true
		case !isPlainName(name), LooksSecret(name), len(names) >= maxNames:
			odd = true
		case !slices.Contains(names, name):
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, odd
}

// isPlainName reports whether a connector can declare a name.
func isPlainName(name string) bool {
	if name == "" || len(name) > maxName {
		return false
	}
	for i, c := range []byte(strings.TrimLeft(name, "_")) {
		if !isLetter(c) && !isDigit(c) && (i == 0 || strings.IndexByte("._:-+", c) < 0) {
			return false
		}
	}
	return strings.Trim(name, "_") != ""
}

// ReadNotes returns the notes of a session. complete is false if there are none, or if some are missing.
func ReadNotes(path string) (notes []Note, complete bool, err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("read the notes of the session: %w", err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, false, fmt.Errorf("read the notes of the session: %s is no file", path)
	}
	complete = true
	lines := bufio.NewScanner(io.LimitReader(f, 2*maxNotesSize))
	lines.Buffer(nil, 64<<10)
	for lines.Scan() {
		var n Note
		if err := json.Unmarshal(lines.Bytes(), &n); err != nil || n.Full || len(notes) >= maxNotes {
			complete = false // its session was killed while it wrote, or there was no room
			continue
		}
		n.Query = slices.DeleteFunc(n.Query, func(name string) bool {
			bad := !isPlainName(name) || LooksSecret(name)
			n.Odd = n.Odd || bad
			return bad
		})
		n.Type = mediaType(n.Type)
		notes = append(notes, n)
	}
	return notes, complete && lines.Err() == nil, nil
}

// Shapes are the notes of sessions by host.
type Shapes struct {
	Notes    []Note
	Complete bool // none are missing

	byHost map[authority][]shape
}

type shape struct {
	segments []string
	note     *Note
}

// Of returns the names in the queries of an operation's requests, and the types of their bodies, sorted. all is false
// if it may have others.
func (s *Shapes) Of(op Operation) (names, types []string, all bool) {
	if s.byHost == nil {
		s.byHost = map[authority][]shape{}
		for i := range s.Notes {
			n := &s.Notes[i]
			at := authority{n.Host, n.Port}
			s.byHost[at] = append(s.byHost[at], shape{strings.Split(strings.TrimPrefix(n.Path, "/"), "/"), n})
		}
	}
	all = s.Complete
	for _, sh := range s.byHost[authority{op.Host, op.Port}] {
		if sh.note.Method != op.Method || !op.covers(sh.segments) {
			continue
		}
		all = all && !sh.note.Odd
		names = append(names, sh.note.Query...)
		if sh.note.Type != "" {
			types = append(types, sh.note.Type)
		}
	}
	slices.Sort(names)
	slices.Sort(types)
	return slices.Compact(names), slices.Compact(types), all
}
