package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"crypto/sha256"

	"golang.org/x/sys/unix"
)

// The file of a journal begins with a header, a line of JSON that never changes. At journalMarkAt it has a mark: up to
// where it was folded, and the newest row of the database at that time. Frames begin at journalStart, behind the
// SHA-256 of the header, which is the first sum. What is behind the last frame is zero.

const (
	journalPrefix = "audit.journal-"
	journalMarkAt = 512
	journalStart  = 4096
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
	folded int64
	after  head
}

// append appends the mark as it is stored: with the beginning of its SHA-256.
func (m journalMark) append(out []byte) []byte {
	start := len(out)
	out = fmt.Appendf(out, "%020d %020d %s ", m.folded, m.after.seq, m.after.hash)
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
	folded, ok := parseHead(fields[0], zeroHash)
	if !ok {
		return m, false
	}
	after, ok := parseHead(fields[1], fields[2])
	m = journalMark{folded: folded.seq, after: after}
	return m, ok && m.folded >= journalStart && bytes.HasPrefix(raw, m.append(nil))
}

// createJournal creates the journal of a session beside the database.
func createJournal(db, session, suffix string, after head) (*journal, error) {
	name := journalPrefix + session + "-" + suffix
	j := &journal{session: session, path: filepath.Join(filepath.Dir(db), name)}
	j.foldFirst, j.maxUnfolded, j.allocate = foldFirst, maxUnfolded, allocate
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
		j.remove()
		return nil, fmt.Errorf("create the journal: %w", err)
	}
	return j, nil
}

// create opens and locks the file.
func (j *journal) create() error {
	f, err := os.OpenFile(j.path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the home is missing: %v", err) //nolint:errorlint // unlike a removed file, it is not tried again
	}
	if err != nil {
		return err
	}
	if err := lockNamed(f, j.path); err != nil {
		_ = f.Close()
		return err
	}
	j.file = f
	j.info, err = f.Stat()
	return err
}

// format allocates the first space and writes what precedes the frames.
func (j *journal) format(name string, after head) error {
	header, err := json.Marshal(journalHeader{1, j.session, name})
	if err != nil {
		return err
	}
	first := journalMark{folded: journalStart, after: after}
	raw := make([]byte, journalStart)
	copy(raw, append(header, '\n'))
	first.append(raw[:journalMarkAt])
	copy(raw[journalMarkAt:], first.append(nil))
	j.sum = sha256.Sum256(header)
	copy(raw[journalStart-framePrefix:], append(j.sum[:], '\n'))
	if err := j.allocate(j.file, 0, journalStart+journalAhead); err != nil {
		return err
	}
	if _, err := j.file.WriteAt(raw, 0); err != nil {
		return err
	}
	j.allocated, j.written, j.folded, j.punched = journalStart+journalAhead, journalStart, journalStart, journalStart
	return nil
}

// name returns the name of the file.
func (j *journal) name() string { return filepath.Base(j.path) }

// elsewhere returns what is at the path of the journal if that is not its file; "" if it is.
func (j *journal) elsewhere() string {
	now, err := os.Lstat(j.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return foundMissing
	case err != nil || !os.SameFile(now, j.info):
		return "another file"
	}
	return ""
}

// release deallocates the space of folded frames. The sum before the first one that is left stays.
func (j *journal) release() {
	end := (j.folded - framePrefix) / journalStart * journalStart
	if end-j.punched < journalStep {
		return
	}
	err := unix.Fallocate(int(j.file.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, j.punched, end-j.punched)
	if err == nil || errors.Is(err, unix.EOPNOTSUPP) { // the file then grows until it is removed
		j.punched = end
	}
}

// remove removes the file, if it is still at its path, and closes it.
func (j *journal) remove() {
	if j.elsewhere() == "" {
		_ = os.Remove(j.path)
	}
	_ = j.file.Close()
}
