package chain

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// headDelay is how long a head may be only in memory after its commit.
const headDelay = 2 * time.Millisecond

// HeadFile keeps heads of the chain outside the database, so that a log whose last rows were removed or chained again
// contradicts them. Each writer owns one line of the file, which it rewrites in place after commits. The line may be
// older than the newest commit, never newer.
type HeadFile struct {
	Path, WitnessPath string
	Writer            string

	// Owned by the leader.
	open    *os.File
	writing *os.File    // see beginWriting
	info    os.FileInfo // of open
	Line    HeadLine    // this writer's line; its number is 0 before begin
	next    Head        // the head of the last commit
	Written time.Time   // when line was written
	Checked time.Time   // when the file was last seen to have line
	Behind  bool        // line is older than next
	lost    []HeadLine  // lines of keep that MarkReported has to mark
	kept    int         // breaches that keep has recorded

	LockWait LockWait
}

func NewHeadFile(db string) *HeadFile {
	dir := filepath.Dir(db)
	h := &HeadFile{Path: filepath.Join(dir, "audit.head"), Writer: NewID()}
	h.WitnessPath = filepath.Join(dir, ".audit.witness")
	return h
}

// Begin appends the line of this writer, with the log's newest row. No row is committed before: a log with rows has a
// head.
func (h *HeadFile) Begin(newest Head) error {
	if h.Line.Number > 0 {
		return nil
	}
	h.beginWriting()
	return h.locked(func() error {
		if err := h.makeWitness(); err != nil {
			return err
		}
		line, err := h.appendLine(HeadLine{Head: newest, Writer: h.Writer, State: LineHead})
		if err != nil {
			return err
		}
		h.Line, h.next, h.Behind = line, newest, false
		line.Number, err = h.places()
		if err != nil {
			return err
		}
		h.dropKilled()
		return h.writeWitness(line)
	})
}

// Advance records the head of a commit, and writes it unless it did so within headDelay.
func (h *HeadFile) Advance(newest Head) {
	h.next, h.Behind = newest, true
	if time.Since(h.Written) > headDelay {
		h.Flush()
	}
}

// Flush writes the head that advance recorded, but never over a line of another writer. A failure is harmless: the
// next commit writes it again.
func (h *HeadFile) Flush() {
	if !h.Behind || h.Line.Number == 0 {
		return
	}
	h.Written = time.Now()
	err := Flock(h.open, unix.LOCK_EX, h.LockWait.Span())
	if h.LockWait.Observe(errors.Is(err, unix.EWOULDBLOCK)); err != nil {
		return
	}
	defer unlock(h.open)
	line := h.Line
	line.Head = h.next
	if time.Since(h.Checked) > headDelay && h.Check() != nil || h.writeLine(line) != nil {
		return
	}
	h.Line, h.Behind = line, false
	_ = h.updateWitness()
}

// Check returns a breach if audit.head, or this writer's line in it, is not what this writer wrote.
func (h *HeadFile) Check() *Breach {
	if h.Line.Number == 0 {
		return nil
	}
	now, err := os.Stat(h.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &Breach{Reason: ReasonHeadMissing, Expected: h.next, Found: FoundHeadMissing}
	case err != nil || !os.SameFile(now, h.info):
		return &Breach{Reason: ReasonHeadChanged, Expected: h.next, Found: "another audit.head"}
	case !h.holds(h.Line):
		found := fmt.Sprintf("audit.head without its line %d", h.Line.Number)
		return &Breach{Reason: ReasonHeadChanged, Expected: h.next, Found: found}
	}
	h.Checked = time.Now()
	return nil
}

// holds reports whether the file has line in its place.
func (h *HeadFile) holds(line HeadLine) bool {
	var buf [LineSize]byte
	n, _ := h.open.ReadAt(buf[:], line.offset())
	return bytes.Equal(buf[:n], line.append(nil))
}

// offset returns where the line begins in the file.
func (h HeadLine) offset() int64 { return (h.Number - 1) * LineSize }

func (h *HeadFile) writeLine(line HeadLine) error {
	_, err := h.open.WriteAt(line.append(make([]byte, 0, LineSize)), line.offset())
	return err
}

// appendLine writes line behind the last one, and returns it with its number. An incomplete last line stays as it is.
func (h *HeadFile) appendLine(line HeadLine) (HeadLine, error) {
	places, err := h.places()
	if err != nil {
		return line, err
	}
	line.Number = places + 1
	return line, h.writeLine(line)
}

// places returns the number of lines in the file, an incomplete one included.
func (h *HeadFile) places() (int64, error) {
	info, err := h.open.Stat()
	if err != nil {
		return 0, err
	}
	return (info.Size() + LineSize - 1) / LineSize, nil
}

// locked calls f with the file open and locked.
func (h *HeadFile) locked(f func() error) error {
	now, err := os.Stat(h.Path)
	if h.open == nil || err != nil || !os.SameFile(now, h.info) {
		h.close()
		if h.open, err = os.OpenFile(h.Path, os.O_RDWR|os.O_CREATE|unix.O_NONBLOCK, 0o600); err != nil {
			return fmt.Errorf("open audit.head: %w", err)
		}
		if h.info, err = h.open.Stat(); err != nil {
			return err
		}
	}
	err = Flock(h.open, unix.LOCK_EX, h.LockWait.Span())
	if h.LockWait.Observe(errors.Is(err, unix.EWOULDBLOCK)); err != nil {
		return fmt.Errorf("lock audit.head: %w", err)
	}
	defer unlock(h.open)
	return f()
}

// End closes the file for good, after it has written it to the disk if durable is set.
func (h *HeadFile) End(durable bool) {
	if durable && h.open != nil {
		_ = h.open.Sync()
	}
	h.endWriting()
	h.close()
}

func (h *HeadFile) close() {
	if h.open != nil {
		_ = h.open.Close()
		h.open = nil
	}
}

func unlock(f *os.File) { _ = unix.Flock(int(f.Fd()), unix.LOCK_UN) }

// Flock locks f. It waits for span at most.
func Flock(f *os.File, how int, span time.Duration) error {
	for end := time.Now().Add(span); ; time.Sleep(time.Millisecond) { // flock(2) has no time limit of its own
		err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) || time.Now().After(end) {
			return err
		}
	}
}
