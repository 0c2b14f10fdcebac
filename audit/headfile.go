package audit

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

// headFile keeps heads of the chain outside the database, so that a log whose last rows were removed or chained again
// contradicts them. Each writer owns one line of the file, which it rewrites in place after commits. The line may be
// older than the newest commit, never newer.
type headFile struct {
	path, witnessPath string
	writer            string

	// Owned by the leader.
	open    *os.File
	info    os.FileInfo // of open
	line    headLine    // this writer's line; its number is 0 before begin
	next    head        // the head of the last commit
	written time.Time   // when line was written
	checked time.Time   // when the file was last seen to have line
	behind  bool        // line is older than next
	lost    []headLine  // lines of keep that markReported has to mark
	kept    int         // breaches that keep has recorded

	lockWait lockWait
}

func newHeadFile(db string) *headFile {
	dir := filepath.Dir(db)
	h := &headFile{path: filepath.Join(dir, "audit.head"), writer: NewID()}
	h.witnessPath = filepath.Join(dir, ".audit.witness")
	return h
}

// begin appends the line of this writer, with the log's newest row. No row is committed before: a log with rows has a
// head.
func (h *headFile) begin(newest head) error {
	if h.line.number > 0 {
		return nil
	}
	return h.locked(func() error {
		if err := h.makeWitness(); err != nil {
			return err
		}
		line, err := h.appendLine(headLine{head: newest, writer: h.writer, state: lineHead})
		if err != nil {
			return err
		}
		h.line, h.next, h.behind = line, newest, false
		line.number, err = h.places()
		if err != nil {
			return err
		}
		return h.writeWitness(line)
	})
}

// advance records the head of a commit, and writes it unless it did so within groupDelay.
func (h *headFile) advance(newest head) {
	h.next, h.behind = newest, true
	if time.Since(h.written) > groupDelay {
		h.flush()
	}
}

// flush writes the head that advance recorded, but never over a line of another writer. A failure is harmless: the
// next commit writes it again.
func (h *headFile) flush() {
	if !h.behind || h.line.number == 0 {
		return
	}
	h.written = time.Now()
	err := flock(h.open, unix.LOCK_EX, h.lockWait.span())
	if h.lockWait.observe(err); err != nil {
		return
	}
	defer unlock(h.open)
	line := h.line
	line.head = h.next
	if time.Since(h.checked) > groupDelay && h.check() != nil || h.writeLine(line) != nil {
		return
	}
	h.line, h.behind = line, false
	_ = h.updateWitness()
}

// check returns a breach if audit.head, or this writer's line in it, is not what this writer wrote.
func (h *headFile) check() *breach {
	if h.line.number == 0 {
		return nil
	}
	now, err := os.Stat(h.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &breach{reason: reasonHeadMissing, expected: h.next, found: foundHeadMissing}
	case err != nil || !os.SameFile(now, h.info):
		return &breach{reason: reasonHeadChanged, expected: h.next, found: "another audit.head"}
	case !h.holds(h.line):
		found := fmt.Sprintf("audit.head without its line %d", h.line.number)
		return &breach{reason: reasonHeadChanged, expected: h.next, found: found}
	}
	h.checked = time.Now()
	return nil
}

// holds reports whether the file has line in its place.
func (h *headFile) holds(line headLine) bool {
	var buf [lineSize]byte
	n, _ := h.open.ReadAt(buf[:], line.offset())
	return bytes.Equal(buf[:n], line.append(nil))
}

// offset returns where the line begins in the file.
func (h headLine) offset() int64 { return (h.number - 1) * lineSize }

func (h *headFile) writeLine(line headLine) error {
	_, err := h.open.WriteAt(line.append(make([]byte, 0, lineSize)), line.offset())
	return err
}

// appendLine writes line behind the last one, and returns it with its number. An incomplete last line stays as it is.
func (h *headFile) appendLine(line headLine) (headLine, error) {
	places, err := h.places()
	if err != nil {
		return line, err
	}
	line.number = places + 1
	return line, h.writeLine(line)
}

// places returns the number of lines in the file, an incomplete one included.
func (h *headFile) places() (int64, error) {
	info, err := h.open.Stat()
	if err != nil {
		return 0, err
	}
	return (info.Size() + lineSize - 1) / lineSize, nil
}

// locked calls f with the file open and locked.
func (h *headFile) locked(f func() error) error {
	now, err := os.Stat(h.path)
	if h.open == nil || err != nil || !os.SameFile(now, h.info) {
		h.close()
		if h.open, err = os.OpenFile(h.path, os.O_RDWR|os.O_CREATE|unix.O_NONBLOCK, 0o600); err != nil {
			return fmt.Errorf("open audit.head: %w", err)
		}
		if h.info, err = h.open.Stat(); err != nil {
			return err
		}
	}
	err = flock(h.open, unix.LOCK_EX, h.lockWait.span())
	if h.lockWait.observe(err); err != nil {
		return fmt.Errorf("lock audit.head: %w", err)
	}
	defer unlock(h.open)
	return f()
}

func (h *headFile) close() {
	if h.open != nil {
		_ = h.open.Close()
		h.open = nil
	}
}

func unlock(f *os.File) { _ = unix.Flock(int(f.Fd()), unix.LOCK_UN) }

// flock locks f. It waits for span at most.
func flock(f *os.File, how int, span time.Duration) error {
	for end := time.Now().Add(span); ; time.Sleep(time.Millisecond) { // flock(2) has no time limit of its own
		err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) || time.Now().After(end) {
			return err
		}
	}
}
