package approvals

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"

	"github.com/ALRubinger/aileron/internal/system"
)

// endMarked ends the processes of this user that have the mark in their environment. A child of a decider that has left
// its process group has it still. Some passes find those that were started meanwhile.
func endMarked(mark string) {
	for range 10 {
		entries, _ := os.ReadDir("/proc") // an error: none can be found
		ended := 0
		for _, e := range entries {
			if pid, err := strconv.Atoi(e.Name()); err == nil && pid != os.Getpid() && endIfMarked(pid, mark) {
				ended++
			}
		}
		if ended == 0 {
			return
		}
	}
}

func endIfMarked(pid int, mark string) bool {
	if !hasMark(pid, mark) {
		return false
	}
	// Read again: the number may have changed hands meanwhile.
	return system.KillProcess(pid, func() bool { return hasMark(pid, mark) }) == nil
}

// hasMark reports whether a process has the mark in its environment. That of other users cannot be read, and that of
// one that has ended is empty.
func hasMark(pid int, mark string) bool {
	env, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ"))
	return err == nil && bytes.Contains(append([]byte{0}, env...), []byte("\x00"+mark+"\x00"))
}
