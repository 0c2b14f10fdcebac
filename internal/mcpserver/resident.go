package mcpserver

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
)

// adviceDontNeed is MADV_DONTNEED of madvise(2).
const adviceDontNeed = 4

// shrink unmaps the pages of the program that only the start of a session needed, 8 MiB of 32 that the process has: a
// desktop app runs a server for each of its windows, which mostly waits. What is needed of them again, the kernel maps
// from its cache.
func shrink() {
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return
	}
	defer maps.Close()
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	for _, m := range programMaps(maps, exe) {
		_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, m[0], m[1]-m[0], adviceDontNeed) // it is an optimisation
	}
}

// programMaps returns the beginning and the end of what is mapped of a file and cannot be written: its pages in memory
// are those of the file. See proc_pid_maps(5).
func programMaps(maps io.Reader, file string) (all [][2]uintptr) {
	lines := bufio.NewScanner(maps)
	for lines.Scan() {
		var begin, end uintptr
		var access, offset, device string
		var inode uint64
		line := lines.Text()
		n, _ := fmt.Sscanf(line, "%x-%x %s %s %s %d", &begin, &end, &access, &offset, &device, &inode)
		if n == 6 && inode != 0 && (access == "r-xp" || access == "r--p") && strings.HasSuffix(line, " "+file) {
			all = append(all, [2]uintptr{begin, end})
		}
	}
	return all
}
