package engine

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// groups are the control groups of a container's first process, by controller
// ("memory", "cpu", "pids"), as directories of this machine. A controller whose
// group is not the container's own has "". The zero value is not known.
type groups map[string]group

// group is a directory of the kernel's control groups.
type group struct {
	dir     string
	unified bool // of version 2
}

// groupsOf finds the groups that /proc/PID/cgroup lists. Those that do not name
// the container are not its own.
func groupsOf(list, id string) groups {
	found := groups{}
	for line := range strings.Lines(list) {
		number, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, path, ok := strings.Cut(rest, ":")
		if !ok {
			continue
		}
		if number == "0" && controllers == "" {
			for _, name := range []string{"memory", "cpu", "pids"} {
				if _, known := found[name]; !known && !hasVersion1(name) {
					found[name] = groupAt("/sys/fs/cgroup", path, id, true)
				}
			}
			continue
		}
		for name := range strings.SplitSeq(controllers, ",") {
			found[name] = groupAt(filepath.Join("/sys/fs/cgroup", name), path, id, false)
		}
	}
	return found
}

// hasVersion1 reports whether a controller is of version 1 on this machine,
// beside a version 2 without it.
func hasVersion1(controller string) bool {
	_, err := os.Stat(filepath.Join("/sys/fs/cgroup", controller))
	return err == nil
}

// groupAt is the container's own group, where path is in it: runtimes of
// version 2 put the process into a group below the one that has the limits.
func groupAt(root, path, id string, unified bool) group {
	before, after, own := strings.Cut(path, id)
	rest, _, _ := strings.Cut(after, "/")
	dir := filepath.Join(root, before+id+rest)
	if _, err := os.Stat(dir); err != nil || !own {
		return group{}
	}
	return group{dir, unified}
}

// unenforced names the limits that the kernel does not enforce: their group is
// not the container's own, or has no such limit.
func (g groups) unenforced(l Limits) (names []string) {
	if len(g) == 0 {
		return nil // not known
	}
	if l.Memory > 0 && !g["memory"].bounded("memory.max", "memory.limit_in_bytes", l.Memory) {
		names = append(names, "memory")
	}
	if l.CPUs > 0 && !g["cpu"].bounded("cpu.max", "cpu.cfs_quota_us", int64(l.CPUs*cpuPeriod)) {
		names = append(names, "cpus")
	}
	return names
}

// bounded reports whether a file of the group, by the name of its version,
// begins with a number that is at most most.
func (g group) bounded(unified, split string, most int64) bool {
	name := split
	if g.unified {
		name = unified
	}
	first, _, _ := strings.Cut(g.read(name), " ")
	n, err := strconv.ParseInt(strings.TrimSpace(first), 10, 64)
	return err == nil && n > 0 && n <= most
}

func (g group) read(name string) string {
	if g.dir == "" {
		return ""
	}
	data, err := os.ReadFile(filepath.Join(g.dir, name))
	if err != nil {
		return ""
	}
	return string(data)
}

// look adds to e what the container has run out of.
func (g groups) look(e *Exhaustion) {
	memory := "memory.oom_control"
	if g["memory"].unified {
		memory = "memory.events"
	}
	e.Memory = e.Memory || count(g["memory"].read(memory), "oom_kill") > 0
	e.Processes = e.Processes || count(g["pids"].read("pids.events"), "max") > 0
}

// count is the number behind a name, at the start of a line; 0 for none.
func count(text, name string) int64 {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			n, _ := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
			return n
		}
	}
	return 0
}
