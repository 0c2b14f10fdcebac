package procid

import (
	"fmt"
	"os"
)

// startOf returns the start time of a living process, in the kernel's ticks.
func startOf(pid int) (string, error) {
	fields, err := Stat(pid)
	if err != nil {
		return "", err
	}
	if fields[StatState] == "Z" || fields[StatState] == "X" {
		return "", fmt.Errorf("process %d has ended", pid)
	}
	return fields[StatStart], nil
}

// namespace returns the PID namespace of this process.
func namespace() (string, error) { return os.Readlink("/proc/self/ns/pid") }
