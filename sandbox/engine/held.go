package engine

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/internal/procid"
	"github.com/ALRubinger/aileron/internal/system"
)

// Container is a container that was made, and what the kernel shows of it after
// [Engine.Hold].
type Container struct {
	ID string

	process *pidfd // its first process, while it runs; nil: not known
	pid     int    // of process
	groups  groups // of that process
	over    bool   // it had ended when Hold asked
	exit    *State // how, if the engine knew

	monitor      *pidfd                    // of the process; nil: not known
	abandoned    bool                      // the process had no monitor any more when it was held
	monitorEnded atomic.Pointer[time.Time] // when Orphaned saw it; nil: not yet
	// Monitor is the program of the engine's that reports how the container ends: conmon, or containerd's shim. ""
	// is not known.
	Monitor string
}

// Hold takes hold of a running container's first process, and reports whether
// the engine reports that it runs. It has no hold afterwards where that is not
// possible: an engine of another machine or another namespace of processes, or
// a host without cgroups, by which the process is recognised as the
// container's. Then only the engine can end it.
func (e *Engine) Hold(ctx context.Context, c *Container) (runs bool) {
	defer func() { c.over = !runs }()
	s, err := e.Inspect(ctx, c.ID)
	if err != nil {
		return true // not known
	}
	if s.Exited {
		c.exit = &s
	}
	if !s.Running || s.PID < 1 {
		return s.Running
	}
	// Of one that has ended, or whose number is of another namespace, the engine is asked again, which may take a
	// moment to know.
	if c.hold(s.PID) == unix.ESRCH || c.Ended() {
		return e.stillRuns(ctx, c.ID)
	}
	return true
}

// hold takes hold of a process, unless that was done before or it is not the container's.
func (c *Container) hold(pid int) error {
	if c.Held() {
		return nil
	}
	fd, err := system.OpenProcess(pid)
	if err != nil {
		return err
	}
	p := &pidfd{fd}
	// Read after the descriptor was opened: the number cannot have changed
	// hands since, if it still is what it should be.
	list, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	own := err == nil && strings.Contains(string(list), c.ID)
	// A process that exits leaves its groups before the descriptor reports its
	// end: that it is in no group of its own means nothing then.
	if own || err == nil && !p.ended() && !exiting(pid) {
		c.groups = groupsOf(string(list), c.ID)
	}
	if !own {
		p.release()
		return nil
	}
	c.process, c.pid = p, pid
	c.holdMonitor()
	return nil
}

// holdMonitor takes hold of the monitor of a container whose first process is held: it is that process's parent, and
// has the container's id among its arguments.
func (c *Container) holdMonitor() {
	first, ok := readProcess(c.pid)
	if !ok {
		return
	}
	fd, err := system.OpenProcess(first.parent)
	if err != nil {
		return
	}
	monitor := &pidfd{fd}
	// Read after the descriptor was opened: see Hold.
	p, ok := readProcess(first.parent)
	if ok && p.monitors() == c.ID {
		c.monitor, c.Monitor = monitor, filepath.Base(p.args[0])
		return
	}
	monitor.release()
	// A process whose parent was killed gets another, which knows nothing of containers. The parent of a virtual
	// machine's never did: it is no first process of a namespace.
	c.abandoned = ok && !strings.Contains(strings.Join(p.args, " "), c.ID) && firstOfNamespace(c.pid)
}

// firstOfNamespace reports whether a process is the first one of a namespace below this process's own.
func firstOfNamespace(pid int) bool {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, numbers, _ := strings.Cut(string(status), "\nNSpid:")
	numbers, _, _ = strings.Cut(numbers, "\n")
	all := strings.Fields(numbers)
	return len(all) > 1 && all[len(all)-1] == "1"
}

// Unreported reports whether an end that the engine reports was after that of the monitor, as [Container.Orphaned]
// saw it: what a monitor reports, it knew before. A terminal ends with the monitor, and the program on it at once.
func (c *Container) Unreported(s State) bool {
	ended := c.monitorEnded.Load()
	return ended != nil && s.Finished.After(*ended)
}

// Abandoned reports whether the monitor of the container is known to have ended.
func (c *Container) Abandoned() bool { return c.abandoned || c.monitor.ended() }

// Orphaned is closed, as long as ctx lives, when the monitor of the container has ended and its first process has not:
// nothing reports how it ends, and its streams are closed. It is never closed where the monitor is not known.
func (c *Container) Orphaned(ctx context.Context) <-chan struct{} {
	orphaned := make(chan struct{})
	if c.abandoned {
		close(orphaned)
		return orphaned
	}
	alone := false
	ended := c.monitor.done(ctx, func() {
		now := time.Now()
		c.monitorEnded.Store(&now)
		alone = !c.Ended()
	})
	go func() {
		select {
		case <-ended:
			if alone {
				close(orphaned)
			}
		case <-ctx.Done():
		}
	}()
	return orphaned
}

// release closes the descriptors of the hold.
func (c *Container) release() {
	c.process.release()
	c.monitor.release()
}

// execTime is how long after its start a container's first process may still be
// the engine's runtime, which catches signals for itself until it executes the
// command's init.
const execTime = 5 * time.Second

// TakesSignal reports whether a signal that is sent to the container's first
// process now, after a time since its start, arrives. Before an init has blocked
// it, the kernel drops it: the first process of a namespace gets no signal of
// which it has the default (pid_namespaces(7)). One that catches or ignores it is
// believed later: it may be the runtime. The answer is yes for a process that is
// not held, or has ended.
func (c *Container) TakesSignal(sig syscall.Signal, sinceStart time.Duration) bool {
	if !c.Held() || c.Ended() {
		return true
	}
	blocks, handles := disposition(c.pid, sig)
	return blocks || handles && sinceStart >= execTime
}

// disposition reports whether a process blocks a signal, and whether it catches or
// ignores it (proc_pid_status(5)). One that cannot be read does both.
func disposition(pid int, sig syscall.Signal) (blocks, handles bool) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return true, true
	}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		switch name {
		case "SigBlk", "SigIgn", "SigCgt":
		default:
			continue
		}
		mask, err := strconv.ParseUint(strings.TrimSpace(value), 16, 64)
		if err != nil || mask&(1<<(uint(sig)-1)) == 0 {
			continue
		}
		if name == "SigBlk" {
			blocks = true
		} else {
			handles = true
		}
	}
	return blocks, handles
}

// exiting reports whether a process exits or has ended: its flag PF_EXITING is
// set before it leaves its groups (proc_pid_stat(5), kernel/exit.c).
func exiting(pid int) bool {
	const flagExiting = 0x4
	stat, err := procid.Stat(pid)
	if err != nil {
		return true
	}
	flags, err := strconv.ParseUint(stat[procid.StatFlags], 10, 64)
	return err != nil || flags&flagExiting != 0
}

// stillRuns asks the engine about a process that cannot be seen from here.
func (e *Engine) stillRuns(ctx context.Context, id string) bool {
	for range 5 {
		if s, err := e.Inspect(ctx, id); err == nil && !s.Running {
			return false
		}
		time.Sleep(20 * time.Millisecond)
	}
	return true
}

// Held reports whether the container's first process is held.
func (c *Container) Held() bool { return c.process != nil }

// Ended reports whether the container's first process is held and has ended.
func (c *Container) Ended() bool { return c.process.ended() }

// Done is closed, as long as ctx lives, when the first process has ended and
// last has what the container had run out of. It is never closed for a container
// that is not held.
func (c *Container) Done(ctx context.Context, last *Exhaustion) <-chan struct{} {
	return c.process.done(ctx, func() { c.groups.look(last) })
}

// Look adds to e what the container has run out of.
func (c *Container) Look(e *Exhaustion) { c.groups.look(e) }

// Unenforced returns the limits that the kernel does not enforce for a
// container. Of one that has ended meanwhile, nothing is known: its groups are
// removed with it.
func (c *Container) Unenforced(l Limits) []string {
	missing := c.groups.unenforced(l)
	// While a process exits, it is in no group of version 1 any more, but still in
	// that of version 2: it is recognised, and seems to have no limits.
	if c.process.ended() || c.Held() && exiting(c.pid) {
		return nil
	}
	return missing
}

// Signal sends a signal to a container. One that is paused is unpaused for it.
// Where the engine does not pass it on within callTime, the kernel does, if the
// container is held; else the engine is waited for.
func (e *Engine) Signal(ctx context.Context, c *Container, sig syscall.Signal) {
	call := func(do func(context.Context) error) bool {
		if c.process == nil {
			return do(ctx) == nil
		}
		ctx, cancel := context.WithTimeout(ctx, callTime)
		defer cancel()
		return do(ctx) == nil
	}
	kill := func(ctx context.Context) error { return e.cli.ContainerKill(ctx, c.ID, strconv.Itoa(int(sig))) }
	sent := call(kill) || c.process.signal(sig)
	// Podman accepts signals for a paused container, and keeps them.
	paused := false
	call(func(ctx context.Context) error {
		s, err := e.Inspect(ctx, c.ID)
		paused = err == nil && s.Paused
		return err
	})
	if !paused {
		return
	}
	call(func(ctx context.Context) error { return e.cli.ContainerUnpause(ctx, c.ID) })
	if !sent {
		call(kill)
	}
}

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

// pidfd is a container's first process, held by a descriptor of the kernel's
// (pidfd_open(2)): it can be ended without the engine, and is never another
// process that got its number. A nil one is no process.
type pidfd struct{ fd int }

// signal sends sig, and reports whether there was a process to send it to.
func (p *pidfd) signal(sig syscall.Signal) bool {
	return p != nil && system.SignalProcess(p.fd, sig) == nil
}

// kill kills the process, and with it all that runs in its container, and
// reports whether they ended within d.
func (p *pidfd) kill(d time.Duration) bool {
	if p == nil {
		return false
	}
	_ = system.SignalProcess(p.fd, unix.SIGKILL)
	for until := time.Now().Add(d); ; {
		left := time.Until(until)
		if left < 0 {
			return false
		}
		n, err := p.poll(int(left.Milliseconds()) + 1)
		if err != unix.EINTR {
			return n > 0
		}
	}
}

// poll waits for the end of the process: a pidfd is readable then.
func (p *pidfd) poll(milliseconds int) (int, error) {
	return unix.Poll([]unix.PollFd{{Fd: int32(p.fd), Events: unix.POLLIN}}, milliseconds) //nolint:gosec // a descriptor
}

// ended reports whether the process has ended.
func (p *pidfd) ended() bool {
	if p == nil {
		return false
	}
	n, _ := p.poll(0)
	return n > 0
}

// done is closed when the process has ended and last has returned, as long as
// ctx lives. last is called at once: engines soon remove what belonged to the
// process.
func (p *pidfd) done(ctx context.Context, last func()) <-chan struct{} {
	done := make(chan struct{})
	if p == nil {
		return done
	}
	fd, err := unix.FcntlInt(uintptr(p.fd), unix.F_DUPFD_CLOEXEC, 0) // release closes the other
	if err != nil {
		return done
	}
	_ = unix.SetNonblock(fd, true) // for the runtime, which then waits for it without a thread
	own := os.NewFile(uintptr(fd), "pidfd")
	go func() {
		defer own.Close()
		if waitReadable(ctx, own) {
			last()
			close(done)
		}
	}()
	return done
}

// waitReadable waits until a pidfd is readable, and reports false if ctx ends first.
func waitReadable(ctx context.Context, f *os.File) bool {
	defer context.AfterFunc(ctx, func() { _ = f.SetReadDeadline(time.Unix(1, 0)) })()
	raw, err := f.SyscallConn()
	if err != nil {
		return false
	}
	ended := func(fd uintptr, milliseconds int) bool {
		n, err := (&pidfd{int(fd)}).poll(milliseconds)
		return n > 0 || err != nil && err != unix.EINTR
	}
	over := raw.Read(func(fd uintptr) bool { return ended(fd, 0) }) == nil
	for !over && ctx.Err() == nil { // the runtime cannot wait for it on this kernel
		if raw.Control(func(fd uintptr) { over = ended(fd, 500) }) != nil {
			return false
		}
	}
	return over
}

func (p *pidfd) release() {
	if p != nil {
		_ = unix.Close(p.fd)
	}
}
