package journal

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

	"github.com/ALRubinger/aileron/audit/internal/chain"
)

// journalChunk is how much of a journal is read at a time.
const journalChunk = 256 << 10

// FrameReader reads the frames of a journal, from at to end.
type FrameReader struct {
	File    io.ReaderAt
	At, End int64
	buf     []byte // what was read
	base    int64  // where that begins
}

// bytes returns what the file has between from and to. They are valid until the next call. An incomplete part is
// returned with io.EOF.
func (r *FrameReader) bytes(from, to int64) ([]byte, error) {
	if from >= r.base && to <= r.base+int64(len(r.buf)) {
		return r.buf[from-r.base : to-r.base], nil
	}
	size := min(max(to-from, journalChunk), r.End-from)
	if int64(cap(r.buf)) < size {
		r.buf = make([]byte, size)
	}
	n, err := r.File.ReadAt(r.buf[:max(size, 0)], from)
	r.buf, r.base = r.buf[:n], from
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if from+int64(n) < to {
		return r.buf, io.EOF
	}
	return r.buf[:to-from], nil
}

// ErrNoFrame is returned by next where no whole frame with its sum is.
var ErrNoFrame = errors.New("it is not what the session wrote")

// Next returns the row of the next frame, which is valid until the next call; io.EOF at the end.
func (r *FrameReader) Next() ([]byte, error) {
	if r.At >= r.End {
		return nil, io.EOF
	}
	head, err := r.bytes(r.At-framePrefix, r.At+FrameHead)
	if err != nil {
		return nil, notEOF(err)
	}
	size, ok := frameEnd(head[framePrefix:])
	if !ok || r.At+int64(size) > r.End {
		return nil, ErrNoFrame
	}
	raw, err := r.bytes(r.At-framePrefix, r.At+int64(size))
	if err != nil {
		return nil, notEOF(err)
	}
	row, ok := checkFrame(raw, framePrefix, framePrefix+size)
	if !ok {
		return nil, ErrNoFrame
	}
	r.At += int64(size)
	return row, nil
}

// notEOF returns err, or ErrNoFrame for io.EOF: the file ends in a frame.
func notEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return ErrNoFrame
	}
	return err
}

// sumBefore returns the sum before the next frame.
func (r *FrameReader) sumBefore() (sum []byte, err error) {
	raw, err := r.bytes(r.At-framePrefix, r.At-1)
	if err != nil {
		return nil, notEOF(err)
	}
	return bytes.Clone(raw), nil
}

// torn reports whether what is at the end of the frames is nothing, or a frame that a process was writing when it was
// killed: it has its beginning, and zeros behind that.
func (r *FrameReader) torn() (bool, error) {
	var magic [4]byte
	binary.LittleEndian.PutUint32(magic[:], frameMagic)
	last := r.At // behind the last byte that is not zero
	tail := []byte(nil)
	for from := r.At; from < r.End; {
		raw, err := r.bytes(from, min(from+journalChunk, r.End))
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
		if from == r.At {
			if len(raw) >= len(magic) && last > r.At && !bytes.HasPrefix(raw, magic[:min(int64(len(magic)), last-r.At)]) {
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
	if last < r.At+FrameHead {
		return true, nil
	}
	raw, err := r.bytes(r.At, r.At+FrameHead)
	if err != nil {
		return false, notEOF(err)
	}
	size, ok := frameEnd(raw)
	return ok && last < r.At+int64(size), nil
}

// File is a journal as another process than its session reads it.
type File struct {
	Name, Session string
	Mark          journalMark
	Frames        FrameReader
	Known         func(*chain.Row) bool // reports whether a row can be one that a session wrote
}

// ErrNoJournal is returned for a file that has the name of a journal and not its beginning.
var ErrNoJournal = errors.New("its beginning is not that of a journal of this session")

// Read reads the beginning of a journal, of whose rows known has to report that a session can have written them.
func Read(f *os.File, known func(*chain.Row) bool) (*File, error) {
	path := f.Name()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	j := &File{Name: filepath.Base(path), Session: SessionOf(path), Known: known}
	raw := make([]byte, Start)
	if n, err := f.ReadAt(raw, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	} else if len(bytes.Trim(raw[:n], "\x00")) == 0 {
		j.Mark.Folded, j.Frames = Start, FrameReader{At: Start}
		return j, nil // its session was killed when it created it
	}
	line, _, _ := bytes.Cut(raw[:MarkAt], []byte{'\n'})
	sum := sha256.Sum256(line)
	var h journalHeader
	mark, ok := parseMark(raw[MarkAt:])
	if strictJSON(line, &h) != nil || h != (journalHeader{1, j.Session, j.Name}) || !ok ||
		!bytes.Equal(raw[Start-framePrefix:], append(sum[:], '\n')) {
		return nil, ErrNoJournal
	}
	j.Mark = mark
	j.Frames = FrameReader{File: f, At: mark.Folded, End: info.Size()}
	return j, nil
}

// Row returns the next row; io.EOF at the end of the journal.
func (j *File) Row() (*chain.Row, error) {
	at := j.Frames.At
	body, err := j.Frames.Next()
	if errors.Is(err, ErrNoFrame) {
		if torn, err := j.Frames.torn(); err != nil {
			return nil, err
		} else if torn {
			return nil, io.EOF
		}
	}
	if err != nil {
		return nil, err
	}
	r := new(chain.Row)
	if err := r.Parse(string(body), new(chain.RawRow)); err != nil || !j.Known(r) {
		j.Frames.At = at
		return nil, ErrNoFrame
	}
	return r, nil
}

// Rows returns the next rows behind folded, at most n, marked as late. With io.EOF or ErrNoFrame they are the last.
func (j *File) Rows(folded int64, n int) (rows []*chain.Row, err error) {
	for len(rows) < n {
		r, err := j.Row()
		if err != nil {
			return rows, err
		}
		if j.Frames.At <= folded {
			continue
		}
		if err := r.SetField(chain.FieldSpilled, true); err != nil {
			return rows, ErrNoFrame
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// SessionOf returns the session in the name of a journal; "" for other names.
func SessionOf(path string) string {
	rest, ok := strings.CutPrefix(filepath.Base(path), Prefix)
	session, writer, both := strings.Cut(rest, "-")
	if !ok || !both || !IsFileID(session) || !IsFileID(writer) {
		return ""
	}
	return session
}

// IsFileID reports whether the id of a session can be part of a file name.
func IsFileID(session string) bool {
	return session != "" && len(session) <= 64 && strings.Trim(session, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}

// ChangedAt returns the error of a journal that is not what its session wrote.
func ChangedAt(offset int64, err error) error { return fmt.Errorf("at byte %d: %w", offset, err) }

// maxJournals bounds the journals that are read.
const maxJournals = 4096

// Beside returns the paths of the journals beside the database at path, that of the oldest session first.
func Beside(path string) ([]string, error) {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	var names []string
	for len(names) < maxJournals {
		entries, err := dir.ReadDir(256)
		for _, e := range entries {
			if SessionOf(e.Name()) != "" {
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

// Open opens a journal, which must be a regular file.
func Open(path string) (*os.File, error) {
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
