package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// journalChunk is how much of a journal is read at a time.
const journalChunk = 256 << 10

// frameReader reads the frames of a journal, from at to end.
type frameReader struct {
	file    io.ReaderAt
	at, end int64
	buf     []byte // what was read
	base    int64  // where that begins
}

// bytes returns what the file has between from and to. They are valid until the next call. An incomplete part is
// returned with io.EOF.
func (r *frameReader) bytes(from, to int64) ([]byte, error) {
	if from >= r.base && to <= r.base+int64(len(r.buf)) {
		return r.buf[from-r.base : to-r.base], nil
	}
	size := min(max(to-from, journalChunk), r.end-from)
	if int64(cap(r.buf)) < size {
		r.buf = make([]byte, size)
	}
	n, err := r.file.ReadAt(r.buf[:max(size, 0)], from)
	r.buf, r.base = r.buf[:n], from
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if from+int64(n) < to {
		return r.buf, io.EOF
	}
	return r.buf[:to-from], nil
}

// errNoFrame is returned by next where no whole frame with its sum is.
var errNoFrame = errors.New("it is not what the session wrote")

// next returns the row of the next frame, which is valid until the next call; io.EOF at the end.
func (r *frameReader) next() ([]byte, error) {
	if r.at >= r.end {
		return nil, io.EOF
	}
	head, err := r.bytes(r.at-framePrefix, r.at+frameHead)
	if err != nil {
		return nil, notEOF(err)
	}
	size, ok := frameEnd(head[framePrefix:])
	if !ok || r.at+int64(size) > r.end {
		return nil, errNoFrame
	}
	raw, err := r.bytes(r.at-framePrefix, r.at+int64(size))
	if err != nil {
		return nil, notEOF(err)
	}
	row, ok := checkFrame(raw, framePrefix, framePrefix+size)
	if !ok {
		return nil, errNoFrame
	}
	r.at += int64(size)
	return row, nil
}

// notEOF returns err, or errNoFrame for io.EOF: the file ends in a frame.
func notEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return errNoFrame
	}
	return err
}

// sumBefore returns the sum before the next frame.
func (r *frameReader) sumBefore() (sum []byte, err error) {
	raw, err := r.bytes(r.at-framePrefix, r.at-1)
	if err != nil {
		return nil, notEOF(err)
	}
	return bytes.Clone(raw), nil
}

// torn reports whether what is at the end of the frames is nothing, or a frame that a process was writing when it was
// killed: it has its beginning, and zeros behind that.
func (r *frameReader) torn() (bool, error) {
	var magic [4]byte
	binary.LittleEndian.PutUint32(magic[:], frameMagic)
	last := r.at // behind the last byte that is not zero
	tail := []byte(nil)
	for from := r.at; from < r.end; {
		raw, err := r.bytes(from, min(from+journalChunk, r.end))
		if err != nil && !errors.Is(err, io.EOF) {
			return false, err
		}
		if len(raw) == 0 {
			break
		}
		if used := bytes.TrimRight(raw, "\x00"); len(used) > 0 {
			last = from + int64(len(used))
		}
		joined := append(tail, raw...)
		if from == r.at {
			if len(raw) >= len(magic) && last > r.at && !bytes.HasPrefix(raw, magic[:min(int64(len(magic)), last-r.at)]) {
				return false, nil
			}
			joined = joined[min(1, len(joined)):]
		}
		if bytes.Contains(joined, magic[:]) {
			return false, nil // a frame follows
		}
		tail = bytes.Clone(joined[max(0, len(joined)-len(magic)+1):])
		from += int64(len(raw))
	}
	if last < r.at+frameHead {
		return true, nil
	}
	raw, err := r.bytes(r.at, r.at+frameHead)
	if err != nil {
		return false, notEOF(err)
	}
	size, ok := frameEnd(raw)
	return ok && last < r.at+int64(size), nil
}

// journalFile is a journal as another process than its session reads it.
type journalFile struct {
	name, session string
	mark          journalMark
	frames        frameReader
}

// errNoJournal is returned for a file that has the name of a journal and not its beginning.
var errNoJournal = errors.New("its beginning is not that of a journal of this session")

// readJournal reads the beginning of a journal.
func readJournal(f *os.File) (*journalFile, error) {
	path := f.Name()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	j := &journalFile{name: filepath.Base(path), session: journalSession(path)}
	raw := make([]byte, journalStart)
	if n, err := f.ReadAt(raw, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	} else if len(bytes.Trim(raw[:n], "\x00")) == 0 {
		j.mark.folded, j.frames = journalStart, frameReader{at: journalStart}
		return j, nil // its session was killed when it created it
	}
	line, _, _ := bytes.Cut(raw[:journalMarkAt], []byte{'\n'})
	sum := sha256.Sum256(line)
	var h journalHeader
	mark, ok := parseMark(raw[journalMarkAt:])
	if strictJSON(line, &h) != nil || h != (journalHeader{1, j.session, j.name}) || !ok ||
		!bytes.Equal(raw[journalStart-framePrefix:], append(sum[:], '\n')) {
		return nil, errNoJournal
	}
	j.mark = mark
	j.frames = frameReader{file: f, at: mark.folded, end: info.Size()}
	return j, nil
}

// row returns the next row; io.EOF at the end of the journal.
func (j *journalFile) row() (*Row, error) {
	at := j.frames.at
	body, err := j.frames.next()
	if errors.Is(err, errNoFrame) {
		if torn, err := j.frames.torn(); err != nil {
			return nil, err
		} else if torn {
			return nil, io.EOF
		}
	}
	if err != nil {
		return nil, err
	}
	r := new(Row)
	if err := r.parse(string(body), new(rawRow)); err != nil || !r.plausible() {
		j.frames.at = at
		return nil, errNoFrame
	}
	return r, nil
}

// plausible reports whether a row can be one of this package.
func (r *Row) plausible() bool {
	_, isID := idTime(r.ID)
	return isID && !r.TS.IsZero() && r.Event.Valid()
}

// journalSession returns the session in the name of a journal; "" for other names.
func journalSession(path string) string {
	rest, ok := strings.CutPrefix(filepath.Base(path), journalPrefix)
	session, writer, both := strings.Cut(rest, "-")
	if !ok || !both || !isFileID(session) || !isFileID(writer) {
		return ""
	}
	return session
}

// isFileID reports whether the id of a session can be part of a file name.
func isFileID(session string) bool {
	return session != "" && len(session) <= 64 && strings.Trim(session, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}

// changedAt returns the error of a journal that is not what its session wrote.
func changedAt(offset int64, err error) error { return fmt.Errorf("at byte %d: %w", offset, err) }

// maxJournals bounds the journals that are read.
const maxJournals = 4096

// journalsBeside returns the paths of the journals beside the database at path, that of the oldest session first.
func journalsBeside(path string) ([]string, error) {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	var names []string
	for len(names) < maxJournals {
		entries, err := dir.ReadDir(256)
		for _, e := range entries {
			if journalSession(e.Name()) != "" {
				names = append(names, filepath.Join(filepath.Dir(path), e.Name()))
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	slices.Sort(names)
	return names, nil
}

// openJournal opens a journal, which must be a regular file.
func openJournal(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		_ = f.Close()
		return nil, errors.New("it is not a regular file")
	}
	return f, nil
}

// strictJSON decodes one JSON value, and rejects unknown names and anything behind the value.
func strictJSON(raw []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if d.InputOffset() != int64(len(raw)) {
		return errors.New("more follows")
	}
	return nil
}
