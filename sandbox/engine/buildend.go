package engine

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// inContainer returns whether a process is in another PID namespace than a
// service: a command of a build, and not the runtime that cleans up after it.
func inContainer(service int) func(pid int) bool {
	namespace := func(pid int) string {
		at, _ := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "ns/pid"))
		return at
	}
	own := namespace(service)
	return func(pid int) bool {
		at := namespace(pid)
		return at != "" && own != "" && at != own
	}
}

// killCommands kills the commands that builds of a service run: the processes
// below its own children that are in a container. The others are Podman's and its
// runtime's, and remove what the commands leave.
func killCommands(service int, contained func(pid int) bool) {
	parents := processParents()
	below := func(pid int) bool { // more than one generation
		depth := 0
		for ; pid > 1 && pid != service && depth < len(parents); depth++ {
			pid = parents[pid]
		}
		return pid == service && depth > 1
	}
	for pid := range parents {
		if !below(pid) || !contained(pid) {
			continue
		}
		// Another process may have the number by now; its descriptor stays the same one's.
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue
		}
		if parentOf(pid) == parents[pid] {
			_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
		}
		_ = unix.Close(fd)
	}
}

// processParents returns the parent of each process of this machine.
func processParents() map[int]int {
	parents := map[int]int{}
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		if pid, err := strconv.Atoi(filepath.Base(dir)); err == nil {
			if parent := parentOf(pid); parent > 0 {
				parents[pid] = parent
			}
		}
	}
	return parents
}

// parentOf returns the parent of a process (proc_pid_stat(5)), or 0.
func parentOf(pid int) int {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	at := bytes.LastIndexByte(stat, ')') // its name may have any bytes
	if err != nil || at < 0 {
		return 0
	}
	fields := strings.Fields(string(stat[at+1:]))
	if len(fields) < 2 {
		return 0
	}
	parent, _ := strconv.Atoi(fields[1])
	return parent
}
