package sandbox

import (
	"fmt"
	"os"
	"strings"
)

// ownerForm is a process's number, its start, and its namespace.
const ownerForm = "%d/%d/pid:[%d]"

// ownerOf names a process of this machine so that another one can tell
// whether it still lives: its number, when it started, and the namespace in
// which the number counts. A number alone is soon another process's.
func ownerOf(pid int) (string, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", fmt.Errorf("name the owner of a box: %w", err)
	}
	namespace, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return "", fmt.Errorf("name the owner of a box: %w", err)
	}
	// proc(5): the second field is the program's name in brackets, and may
	// hold anything; the start is the 22nd.
	_, rest, _ := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')'):]), " ")
	fields := strings.Fields(rest)
	if len(fields) > 0 && (fields[0] == "Z" || fields[0] == "X") {
		return "", fmt.Errorf("name the owner of a box: process %d has ended", pid)
	}
	if len(fields) < 20 {
		return "", fmt.Errorf("name the owner of a box: /proc/%d/stat is not as proc(5) says", pid)
	}
	return fmt.Sprintf("%d/%s/%s", pid, fields[19], namespace), nil
}

// ownerLives tells whether the process of a label lives. One of another
// namespace cannot be judged from here, and counts as living: sessions of
// other homes and of other containers share an engine with ours.
func ownerLives(label string) bool {
	parts := strings.SplitN(label, "/", 3)
	if len(parts) != 3 {
		return false
	}
	var pid int
	if _, err := fmt.Sscanf(parts[0], "%d", &pid); err != nil {
		return false
	}
	if namespace, err := os.Readlink("/proc/self/ns/pid"); err != nil || namespace != parts[2] {
		return true
	}
	now, err := ownerOf(pid)
	return err == nil && now == label
}
