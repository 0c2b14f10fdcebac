// Package procid identifies a process of this machine by a text from which
// another process can find out later whether it still lives. Call [Of] for the
// text and [Lives] for the question. A process number alone will not do: it is
// soon another process's, and counts in one namespace only.
package procid

import (
	"bytes"
	"fmt"
	"os"
	"strings"
)

// form is a process's number, its start time, and its PID namespace.
const form = "%d/%d/pid:[%d]"

// Of returns the identity of a living process: its number, its start time, and
// the namespace in which the number counts.
func Of(pid int) (string, error) {
	start, err := startOf(pid)
	if err != nil {
		return "", fmt.Errorf("identify a process: %w", err)
	}
	namespace, err := namespace()
	if err != nil {
		return "", fmt.Errorf("identify a process: %w", err)
	}
	return fmt.Sprintf("%d/%s/%s", pid, start, namespace), nil
}

// The fields that [Stat] returns, by their names in proc_pid_stat(5).
const (
	StatState  = 0 // one letter
	StatParent = 1
	StatTPGID  = 5
	StatFlags  = 6
	StatTimes  = 11 // utime, stime, cutime and cstime
	StatStart  = 19
)

// Stat returns the fields of /proc/PID/stat behind the name of the program, which may have any bytes. There are none
// on macOS.
func Stat(pid int) ([]string, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil, err
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) <= StatStart {
		return nil, fmt.Errorf("/proc/%d/stat has not the form of proc(5)", pid)
	}
	return fields, nil
}

// Lives reports whether the process with an identity lives. One of another
// namespace cannot be judged from here, and counts as living: sessions of
// other homes and of other containers share an engine with this one's. A text
// that is no identity names no living process.
func Lives(id string) bool {
	parts := strings.SplitN(id, "/", 3)
	if len(parts) != 3 {
		return false
	}
	var pid int
	if _, err := fmt.Sscanf(parts[0], "%d", &pid); err != nil {
		return false
	}
	if namespace, err := namespace(); err != nil || namespace != parts[2] {
		return true
	}
	now, err := Of(pid)
	return err == nil && now == id
}

// Numbers returns the three numbers of an identity, for names in which it
// cannot stand as it is.
func Numbers(id string) (pid, start, namespace uint64, err error) {
	if _, err := fmt.Sscanf(id, form, &pid, &start, &namespace); err != nil {
		return 0, 0, 0, fmt.Errorf("read the process identity %q: %w", id, err)
	}
	return pid, start, namespace, nil
}

// Join is the inverse of [Numbers].
func Join(pid, start, namespace uint64) string { return fmt.Sprintf(form, pid, start, namespace) }
