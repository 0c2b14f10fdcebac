package native

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// cgroup is the control group of a sandbox, beside that of this process.
type cgroup struct {
	path string
	dir  *os.File
}

// cgroupRoot is where systemd mounts control groups of version 2, ownCgroups where the kernel names those of this
// process, and cgroupPeriod the time of cpu.max in microseconds.
const (
	cgroupRoot   = "/sys/fs/cgroup"
	ownCgroups   = "/proc/self/cgroup"
	cgroupPeriod = 100_000
)

// makeCgroup makes a control group with the limits of a sandbox, where this user has been given the right to: a service
// manager delegates it. It returns nil where there is none, and the limits that are not enforced, for people.
func makeCgroup(c Config) (*cgroup, []string) {
	var wanted []string
	if c.Memory > 0 {
		wanted = append(wanted, "memory")
	}
	if c.CPUs > 0 {
		wanted = append(wanted, "cpus")
	}
	if len(wanted) == 0 {
		return nil, nil
	}
	parent, err := cgroupParent(cgroupRoot, ownCgroups)
	if err != nil {
		return nil, wanted
	}
	return makeCgroupIn(parent, c, wanted)
}

func makeCgroupIn(parent string, c Config, wanted []string) (*cgroup, []string) {
	path := filepath.Join(parent, groupName(c.Session))
	if err := os.Mkdir(path, 0o755); err != nil { //nolint:gosec // as those beside it
		return nil, wanted
	}
	g := &cgroup{path: path}
	var err error
	if g.dir, err = os.Open(path); err != nil {
		g.remove()
		return nil, wanted
	}
	return g, g.limit(c)
}

func groupName(session string) string { return "aileron-" + session }

// Sweep removes what a killed aileron has left of the sandbox of a session, whose processes the kernel has ended.
func Sweep(session string) {
	if parent, err := cgroupParent(cgroupRoot, ownCgroups); err == nil && session != "" {
		(&cgroup{path: filepath.Join(parent, groupName(session))}).remove()
	}
}

// cgroupParent is the group above that of this process, which the file own names: one that has processes has no groups
// with limits.
func cgroupParent(root, own string) (string, error) {
	if _, err := os.Stat(filepath.Join(root, "cgroup.controllers")); err != nil {
		return "", err // version 1, or both
	}
	data, err := os.ReadFile(own)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(data)) {
		group, ok := strings.CutPrefix(strings.TrimSpace(line), "0::/")
		if ok && filepath.IsLocal(group) { // not the root, and not above that of this namespace
			return filepath.Join(root, filepath.Dir(group)), nil
		}
	}
	return "", os.ErrNotExist
}

// limit sets the limits, and returns those that could not be set.
func (g *cgroup) limit(c Config) (unenforced []string) {
	set := func(file, value string) bool {
		f, err := os.OpenFile(filepath.Join(g.path, file), os.O_WRONLY, 0) // there is none without its controller
		if err != nil {
			return false
		}
		_, err = f.WriteString(value)
		return errors.Join(err, f.Close()) == nil
	}
	if c.Memory > 0 {
		if !set("memory.max", strconv.FormatInt(c.Memory, 10)) {
			unenforced = append(unenforced, "memory")
		}
		_ = set("memory.swap.max", "0") // where there is swap
	}
	if c.CPUs > 0 && !set("cpu.max", fmt.Sprintf("%d %d", int64(c.CPUs*cgroupPeriod), cgroupPeriod)) {
		unenforced = append(unenforced, "cpus")
	}
	if c.Processes > 0 {
		_ = set("pids.max", strconv.Itoa(c.Processes)) // which RLIMIT_NPROC bounds too
	}
	return unenforced
}

// outOfMemory reports whether the kernel has killed a process of the group.
func (g *cgroup) outOfMemory() bool {
	if g == nil {
		return false
	}
	data, err := os.ReadFile(filepath.Join(g.path, "memory.events"))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(data)) {
		if n, ok := strings.CutPrefix(strings.TrimSpace(line), "oom_kill "); ok {
			return n != "0"
		}
	}
	return false
}

// remove removes the group, whose processes have ended.
func (g *cgroup) remove() {
	if g == nil {
		return
	}
	if g.dir != nil {
		_ = g.dir.Close()
	}
	for range 50 { // the kernel may take a moment to see that
		if err := syscall.Rmdir(g.path); err == nil || os.IsNotExist(err) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}
