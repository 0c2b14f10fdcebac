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

// headFile keeps heads of the chain outside the database: a log whose last
// rows were cut off or chained again does not agree with them. Each writer
// owns one line of the file, which it rewrites in place after commits. The
// line may lag behind a commit; it never runs ahead of one.
type headFile struct {
	path, witnessPath string
	writer            string

	// Of the leading goroutine.
	open    *os.File
	info    os.FileInfo // of open
	line    headLine    // the line that this writer owns; number is 0 before begin
	next    head        // of the last commit
	written time.Time   // when line was
	checked time.Time   // when line was in the file, as it was left
	behind  bool        // line is older than next
	lost    []headLine  // lines that keep recorded and markReported has to acknowledge
	kept    int         // breaches that keep recorded

	lockWait lockWait
}

func newHeadFile(db string) *headFile {
	dir := filepath.Dir(db)
	h := &headFile{path: filepath.Join(dir, "audit.head"), writer: NewID()}
	h.witnessPath = filepath.Join(dir, ".audit.witness")
	return h
}

// begin appends the line of this writer, which holds the log's newest row. No
// row is committed before: a log with rows has a head.
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

// advance records a commit's head, and writes it unless it did so just now.
func (h *headFile) advance(newest head) {
	h.next, h.behind = newest, true
	if time.Since(h.written) > groupDelay {
		h.flush()
	}
}

// flush writes what advance left, but never over a line of others. Failing is
// no harm now: the next commit writes it again.
func (h *headFile) flush() {
	if !h.behind || h.line.number == 0 {
		return
	}
	h.written = time.Now()
	err := flock(h.open, unix.LOCK_EX, h.lockWait.span())
	if h.lockWait.learn(err); err != nil {
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

// check returns a breach when audit.head, or the line of this writer in it, is
// not the one that this writer left.
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
	if former, ok := parseFormer(buf[:n]); ok {
		return former == line
	}
	return bytes.Equal(buf[:n], line.append(nil))
}

func (h headLine) offset() int64 { return (h.number - 1) * lineSize }

func (h *headFile) writeLine(line headLine) error {
	_, err := h.open.WriteAt(line.append(make([]byte, 0, lineSize)), line.offset())
	return err
}

// appendLine writes line behind the last one and returns it with its number. A
// cut line stays as it is; the file of an earlier version becomes line 1.
func (h *headFile) appendLine(line headLine) (headLine, error) {
	var buf [lineSize]byte
	n, _ := h.open.ReadAt(buf[:], 0)
	if former, ok := parseFormer(buf[:n]); ok {
		if err := h.writeLine(former); err != nil {
			return line, err
		}
	}
	places, err := h.places()
	if err != nil {
		return line, err
	}
	line.number = places + 1
	return line, h.writeLine(line)
}

// places returns how many lines the file has room for.
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
	if h.lockWait.learn(err); err != nil {
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

// flock locks f. It waits for span, and no longer.
func flock(f *os.File, how int, span time.Duration) error {
	for end := time.Now().Add(span); ; time.Sleep(time.Millisecond) {
		err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) || time.Now().After(end) {
			return err
		}
	}
}
