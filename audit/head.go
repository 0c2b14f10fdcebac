package audit

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// headFile keeps the chain's head outside the database: "seq hash\n". A log
// whose last rows were cut off ends before it. It is written after a commit
// and may lag behind one; it never runs ahead.
type headFile struct {
	path string

	// Of the writing goroutine.
	open    *os.File // nil: not yet
	seq     int64    // of the last commit
	hash    string
	written time.Time // when the file was
	behind  bool      // the file does not say seq
}

// advance notes a commit's head, and writes it unless it did so just now.
func (h *headFile) advance(seq int64, hash string) {
	h.seq, h.hash, h.behind = seq, hash, true
	if time.Since(h.written) > lingering {
		h.settle()
	}
}

// settle writes what advance left.
func (h *headFile) settle() {
	if h.behind {
		h.behind, h.written = false, time.Now()
		h.write(h.seq, h.hash)
	}
}

// write writes the head, unless another process has written a later one.
// Failing is no harm now: the next commit writes it again.
func (h *headFile) write(seq int64, hash string) {
	if h.open == nil {
		f, err := os.OpenFile(h.path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return
		}
		h.open = f
	}
	fd := int(h.open.Fd())
	if unix.Flock(fd, unix.LOCK_EX) != nil {
		return
	}
	defer unix.Flock(fd, unix.LOCK_UN) //nolint:errcheck // closing unlocks as well
	var now unix.Stat_t
	if unix.Fstat(fd, &now) != nil || now.Nlink == 0 { // removed under us
		h.close()
		return
	}
	var buf [128]byte
	n, _ := h.open.ReadAt(buf[:], 0)
	if old, _, err := parseHead(buf[:n]); err == nil && old >= seq {
		return
	}
	// One sector, fixed width: a torn write is not possible in practice.
	_, _ = h.open.WriteAt(fmt.Appendf(buf[:0], "%020d %s\n", seq, hash), 0)
}

func (h *headFile) close() {
	if h.open != nil {
		_ = h.open.Close()
		h.open = nil
	}
}

// read gives the head; ok is false when there is none.
func (h *headFile) read() (seq int64, hash string, ok bool) {
	raw, err := os.ReadFile(filepath.Clean(h.path))
	if err != nil {
		return 0, "", false
	}
	seq, hash, err = parseHead(raw)
	return seq, hash, err == nil
}

func parseHead(raw []byte) (int64, string, error) {
	number, hash, found := bytes.Cut(bytes.TrimSpace(raw), []byte(" "))
	if !found || len(hash) != len(zeroHash) {
		return 0, "", fmt.Errorf("read the head of the audit log: it is broken")
	}
	seq, err := strconv.ParseInt(string(number), 10, 64)
	return seq, string(hash), err
}
