package audit

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// headFile keeps the chain's head outside the database: "seq hash\n". A log
// whose last rows were cut off ends before it. It is written after a commit
// and may lag behind one; it never runs ahead.
type headFile struct{ path string }

// advance writes the head, unless another process has written a later one.
// Failing is no harm now: the next commit writes it again.
func (h *headFile) advance(seq int64, hash string) {
	f, err := os.OpenFile(h.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return
	}
	defer f.Close()
	if unix.Flock(int(f.Fd()), unix.LOCK_EX) != nil {
		return
	}
	buf := make([]byte, 128)
	n, _ := f.ReadAt(buf, 0)
	if old, _, err := parseHead(buf[:n]); err == nil && old >= seq {
		return
	}
	// One sector, fixed width: a torn write is not possible in practice.
	_, _ = f.WriteAt(fmt.Appendf(nil, "%020d %s\n", seq, hash), 0)
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
