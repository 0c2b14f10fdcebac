package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/audit/internal/chain"
	"github.com/ALRubinger/aileron/internal/system"
)

// The file of a journal begins with a header, a line of JSON that never changes. At MarkAt it has a mark: up to
// where it was folded, and the newest row of the database at that time. Frames begin at Start, behind the
// SHA-256 of the header, which is the first sum. What is behind the last frame is zero.

const (
	Prefix = "audit.journal-"
	MarkAt = 512
	Start  = 4096
	// journalLockTimeout is how long a new journal may be locked by processes that check whether it is in use.
	journalLockTimeout = 4 * time.Second
)

// journalHeader is the first line of a journal.
type journalHeader struct {
	Version int    `json:"aileron_journal"`
	Session string `json:"session"`
	Name    string `json:"name"`
}

// journalMark is how far a journal was folded.
type journalMark struct {
	Folded int64
	After  chain.Head
}

// append appends the mark as it is stored: with the beginning of its SHA-256.
func (m journalMark) append(out []byte) []byte {
	start := len(out)
	out = fmt.Appendf(out, "%020d %020d %s ", m.Folded, m.After.Seq, m.After.Hash)
	sum := sha256.Sum256(out[start:])
	return fmt.Appendf(out, "%x\n", sum[:8])
}

// parseMark parses a mark; ok is false for anything that append does not produce.
func parseMark(raw []byte) (m journalMark, ok bool) {
	line, _, _ := bytes.Cut(raw, []byte{'\n'})
	fields := strings.Fields(string(line))
	if len(fields) != 4 {
		return m, false
	}
	folded, ok := chain.ParseHead(fields[0], chain.ZeroHash)
	if !ok {
		return m, false
	}
	after, ok := chain.ParseHead(fields[1], fields[2])
	m = journalMark{Folded: folded.Seq, After: after}
	return m, ok && m.Folded >= Start && bytes.HasPrefix(raw, m.append(nil))
}

// Create creates the journal of a session beside the database.
func Create(db, session, suffix string, after chain.Head) (*Journal, error) {
	name := Prefix + session + "-" + suffix
	j := &Journal{Session: session, Path: filepath.Join(filepath.Dir(db), name)}
	j.FoldFirst, j.MaxUnfolded, j.Allocate = foldFirst, maxUnfolded, allocate
	for end := time.Now().Add(journalLockTimeout); ; time.Sleep(time.Millisecond) {
		err := j.create()
		if err == nil {
			break
		}
		// Another process may have locked the file, and perhaps removed it, before this one did.
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, fs.ErrNotExist) || time.Now().After(end) {
			return nil, fmt.Errorf("create the journal: %w", err)
		}
	}
	if err := j.format(name, after); err != nil {
		j.Remove()
		return nil, fmt.Errorf("create the journal: %w", err)
	}
	return j, nil
}

// create opens and locks the file.
func (j *Journal) create() error {
	f, err := os.OpenFile(j.Path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the home is missing: %v", err) //nolint:errorlint // unlike a removed file, it is not tried again
	}
	if err != nil {
		return err
	}
	if err := LockNamed(f, j.Path); err != nil {
		_ = f.Close()
		return err
	}
	j.File = f
	j.info, err = f.Stat()
	return err
}

// format allocates the first space and writes what precedes the frames.
func (j *Journal) format(name string, after chain.Head) error {
	header, err := json.Marshal(journalHeader{1, j.Session, name})
	if err != nil {
		return err
	}
	first := journalMark{Folded: Start, After: after}
	raw := make([]byte, Start)
	copy(raw, append(header, '\n'))
	first.append(raw[:MarkAt])
	copy(raw[MarkAt:], first.append(nil))
	j.sum = sha256.Sum256(header)
	copy(raw[Start-framePrefix:], append(j.sum[:], '\n'))
	if err := j.Allocate(j.File, 0, Start+Ahead); err != nil {
		return err
	}
	if _, err := j.File.WriteAt(raw, 0); err != nil {
		return err
	}
	j.Allocated, j.Written, j.Folded, j.Punched = Start+Ahead, Start, Start, Start
	return nil
}

// Name returns the name of the file.
func (j *Journal) Name() string { return filepath.Base(j.Path) }

// Elsewhere returns what is at the path of the journal if that is not its file; "" if it is.
func (j *Journal) Elsewhere() string {
	now, err := os.Lstat(j.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return chain.FoundMissing
	case err != nil || !os.SameFile(now, j.info):
		return "another file"
	}
	return ""
}

// release deallocates the space of folded frames. The sum before the first one that is left stays.
func (j *Journal) release() {
	end := (j.Folded - framePrefix) / Start * Start
	if end-j.Punched < Step {
		return
	}
	err := system.Erase(j.File, j.Punched, end-j.Punched)
	if err == nil || errors.Is(err, unix.EOPNOTSUPP) { // the file then grows until it is removed
		j.Punched = end
	}
}

// Remove removes the file, if it is still at its path, and closes it.
func (j *Journal) Remove() {
	if j.Elsewhere() == "" {
		_ = os.Remove(j.Path)
	}
	_ = j.File.Close()
}
