package chain

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// A writer that is killed between a commit and the write of its line leaves a row that no line names. So each has a
// file of its own while it may have such a row: the file of one that was killed stays until the next writer has begun.

// writingPattern matches the files of writers.
func (h *HeadFile) writingPattern() string {
	return filepath.Join(filepath.Dir(h.Path), "audit.writing-*")
}

// beginWriting makes the file of this writer. Without one, for example because the disk is full, rows are written all
// the same.
func (h *HeadFile) beginWriting() {
	if h.writing != nil {
		return
	}
	path := filepath.Join(filepath.Dir(h.Path), "audit.writing-"+h.Writer)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return
	}
	_ = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) // it is new
	h.writing = f
}

// endWriting removes the file of this writer, unless its line is older than its last commit.
func (h *HeadFile) endWriting() {
	if h.writing == nil {
		return
	}
	if !h.Behind {
		_ = os.Remove(h.writing.Name())
	}
	_ = h.writing.Close()
	h.writing = nil
}

// dropKilled removes the files of writers that were killed: this writer's line names a later row.
func (h *HeadFile) dropKilled() {
	for _, path := range h.Writing() {
		f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
		if err != nil {
			continue
		}
		if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			_ = os.Remove(path)
		}
		_ = f.Close()
	}
}

// Writing returns the files of writers that may have committed a row that no line names.
func (h *HeadFile) Writing() []string {
	names, _ := filepath.Glob(h.writingPattern())
	return names
}
