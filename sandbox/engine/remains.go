package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ALRubinger/aileron/internal/procid"
	"github.com/ALRubinger/aileron/internal/system"
)

// An engine that is killed while it makes or starts a container leaves processes
// that no other one knows of: the monitor that it had started for the container
// (conmon, or containerd's shim), the OCI runtime, and the container's first
// process. They are recognised here by what only they have: the container's id in
// the monitor's arguments, the id in the name of a control group, or a parent that
// is recognised. A program in a sandbox can give itself such arguments, and thereby
// end itself, and those that it has started.

// hostProcess is a process of this machine.
type hostProcess struct {
	pid, parent int
	start       string // of a number that is in use again, it is another
	args        []string
	groups      string // as in /proc/PID/cgroup
}

// hostProcesses returns the processes of this machine, as far as this process sees
// them, without those that have ended.
func hostProcesses() (all []hostProcess) {
	entries, _ := os.ReadDir("/proc") // an error: none is seen
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil {
			if p, ok := readProcess(pid); ok {
				all = append(all, p)
			}
		}
	}
	return all
}

// readProcess reads what identifies a process. It is not ok for one that has ended.
func readProcess(pid int) (p hostProcess, ok bool) {
	stat, err := procid.Stat(pid)
	if err != nil || stat[procid.StatState] == "Z" || stat[procid.StatState] == "X" {
		return p, false
	}
	parent, err := strconv.Atoi(stat[procid.StatParent])
	if err != nil {
		return p, false
	}
	args, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // one of the kernel's has none
	groups, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	return hostProcess{pid: pid, parent: parent, start: stat[procid.StatStart],
		args: strings.Split(string(args), "\x00"), groups: string(groups)}, true
}

// monitors returns the id of the container that the process is the monitor of; ""
// for any other process.
func (p hostProcess) monitors() string {
	switch name := filepath.Base(p.args[0]); {
	case name == "conmon":
		return p.option("-c")
	case strings.HasPrefix(name, "containerd-shim"):
		return p.option("-id")
	}
	return ""
}

// option returns the argument behind a name; "" for none.
func (p hostProcess) option(name string) string {
	at := slices.Index(p.args, name)
	if at < 0 || at+1 >= len(p.args) {
		return ""
	}
	return p.args[at+1]
}

// isClient reports whether the process is a Podman of this machine: a monitor starts
// one that cleans up behind its container, and it may write to Podman's records just
// now. What runs in a container is in another namespace of processes.
func (p hostProcess) isClient() bool {
	if filepath.Base(p.args[0]) != "podman" {
		return false
	}
	own, ownErr := os.Readlink("/proc/self/ns/pid")
	its, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", p.pid))
	return ownErr == nil && err == nil && own == its
}

// kill kills the process, unless it has ended.
func (p hostProcess) kill() {
	_ = system.KillProcess(p.pid, func() bool {
		now, ok := readProcess(p.pid)
		return ok && now.start == p.start
	})
}

// withDescendants returns the processes that are selected, and all that descend from
// them. A monitor is the parent of what its container's processes leave.
func withDescendants(all []hostProcess, selected func(hostProcess) bool) (found []hostProcess) {
	in := map[int]bool{}
	for grown := true; grown; {
		grown = false
		for _, p := range all {
			if !in[p.pid] && (in[p.parent] || selected(p)) && !p.isClient() {
				in[p.pid], grown = true, true
				found = append(found, p)
			}
		}
	}
	return found
}

// isID reports whether a text is the id of a container, which engines choose at random.
func isID(text string) bool {
	return len(text) == 64 && strings.Trim(text, "0123456789abcdef") == ""
}

// remainsOf returns the processes of containers.
func remainsOf(all []hostProcess, ids []string) []hostProcess {
	return withDescendants(all, func(p hostProcess) bool {
		return slices.ContainsFunc(ids, func(id string) bool {
			return isID(id) && (p.monitors() == id || strings.Contains(p.groups, id))
		})
	})
}

// orphans returns the monitors of Podman's containers whose name has a prefix and
// that Podman has removed, with their descendants: a container has its files as long
// as Podman knows of it.
func orphans(all []hostProcess, namePrefix string) []hostProcess {
	return withDescendants(all, func(p hostProcess) bool {
		id, bundle := p.monitors(), p.option("-b")
		if !isID(id) || !strings.Contains(bundle, id) || !strings.HasPrefix(p.option("-n"), namePrefix) {
			return false
		}
		_, err := os.Stat(fmt.Sprintf("/proc/%d/root/%s", p.pid, bundle)) // it may be in a container itself
		return errors.Is(err, fs.ErrNotExist)
	})
}

// endEach ends what find finds until it finds nothing, and returns how many
// processes it has ended.
func endEach(find func() []hostProcess) (ended int) {
	seen := map[string]bool{}
	for until := time.Now().Add(callTime); time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
		found := find()
		if len(found) == 0 {
			break
		}
		for _, p := range found {
			p.kill()
			seen[fmt.Sprint(p.pid, "/", p.start)] = true
		}
	}
	return len(seen)
}

// EndRemains ends the processes of containers that are not needed any more, and which
// their engine may have removed without knowing of them. It does nothing where they
// cannot be seen from here: for an engine of another machine.
func (e *Engine) EndRemains(ids []string) {
	if _, socket := e.Local(); socket && len(ids) > 0 {
		endEach(func() []hostProcess { return remainsOf(hostProcesses(), ids) })
	}
}

// EndOrphans ends the processes of containers whose name has a prefix, and which
// an engine has removed without its monitor, and returns how many it has ended.
func (e *Engine) EndOrphans(namePrefix string) int {
	if _, socket := e.Local(); !socket {
		return 0
	}
	return endEach(func() []hostProcess { return orphans(hostProcesses(), namePrefix) })
}
