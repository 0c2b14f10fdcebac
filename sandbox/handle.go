package sandbox

import (
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// part is a container of a run.
type part struct {
	id     string
	handle *handle // its first process, while it runs; nil: not known
	groups groups  // of that process
}

// handle is a container's first process, held by a descriptor of the kernel's:
// it can be ended without the engine, and is never another process that got
// its number.
type handle struct{ fd int }

// hold takes hold of a running container's first process, and reports whether
// the engine says that it runs. The part has no handle afterwards where that is
// not possible: an engine of another machine or another namespace of processes,
// or a host without cgroups, by which the process is known to be the
// container's. Then only the engine can end it.
func (e *Engine) hold(ctx context.Context, p *part) (runs bool) {
	id := p.id
	c, err := e.cli.ContainerInspect(ctx, id)
	if err != nil || c.State == nil {
		return true // not known
	}
	if !c.State.Running || c.State.Pid < 1 {
		return c.State.Running
	}
	fd, err := unix.PidfdOpen(c.State.Pid, 0)
	if err != nil {
		// It has ended, or its number is of another namespace: the engine is
		// asked again, which may take a moment to know.
		return err != unix.ESRCH || e.stillRuns(ctx, id)
	}
	h := &handle{fd}
	// Read after the descriptor was opened: the number cannot have changed
	// hands since, if it still is what it should be.
	list, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", c.State.Pid))
	own := err == nil && strings.Contains(string(list), id)
	// A process that ends leaves its groups a little before the descriptor
	// reports its end.
	if own || err == nil && !h.overWithin(leavingTime) {
		p.groups = groupsOf(string(list), id)
	}
	if !own {
		h.release()
		return true
	}
	p.handle = h
	return true
}

// unenforced names the limits that the kernel does not enforce for a part. Of
// one that has ended meanwhile, nothing is known: its groups go with it.
func (p *part) unenforced(l Limits) []string {
	missing := p.groups.unenforced(l)
	if p.handle.over() {
		return nil
	}
	return missing
}

// stillRuns asks the engine of a process that cannot be seen from here.
func (e *Engine) stillRuns(ctx context.Context, id string) bool {
	for range 5 {
		c, err := e.cli.ContainerInspect(ctx, id)
		if err == nil && c.State != nil && !c.State.Running {
			return false
		}
		time.Sleep(20 * time.Millisecond)
	}
	return true
}

// signal sends sig, and tells whether there was a process to send it to.
func (h *handle) signal(sig syscall.Signal) bool {
	return h != nil && unix.PidfdSendSignal(h.fd, sig, nil, 0) == nil
}

// end kills the process, and with it all that runs in its container, and
// tells whether they are gone within d.
func (h *handle) end(d time.Duration) bool {
	if h == nil {
		return false
	}
	_ = unix.PidfdSendSignal(h.fd, unix.SIGKILL, nil, 0)
	for until := time.Now().Add(d); ; {
		left := time.Until(until)
		if left < 0 {
			return false
		}
		// pidfd_open(2): readable when the process has ended.
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(h.fd), Events: unix.POLLIN}}, int(left.Milliseconds())+1) //nolint:gosec // a descriptor
		if err != unix.EINTR {
			return n > 0
		}
	}
}

// over tells whether the process has ended already.
func (h *handle) over() bool {
	return h.overWithin(0)
}

// leavingTime is how long the end of a process may take that has left its
// groups, on a busy machine.
const leavingTime = 250 * time.Millisecond

// overWithin is over, and waits for the end.
func (h *handle) overWithin(d time.Duration) bool {
	if h == nil {
		return false
	}
	n, _ := unix.Poll([]unix.PollFd{{Fd: int32(h.fd), Events: unix.POLLIN}}, int(d.Milliseconds())) //nolint:gosec // a descriptor
	return n > 0
}

// ended is closed when the process has ended and last has returned, as long as
// ctx lives. last is called at once: engines remove what belonged to it soon.
func (h *handle) ended(ctx context.Context, last func()) <-chan struct{} {
	done := make(chan struct{})
	if h == nil {
		return done
	}
	fd, err := unix.FcntlInt(uintptr(h.fd), unix.F_DUPFD_CLOEXEC, 0) // release closes the other
	if err != nil {
		return done
	}
	go func() {
		defer func() { _ = unix.Close(fd) }()
		for ctx.Err() == nil {
			if n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 500); n > 0 || err != nil && err != unix.EINTR { //nolint:gosec // a descriptor
				last()
				close(done)
				return
			}
		}
	}()
	return done
}

func (h *handle) release() {
	if h != nil {
		_ = unix.Close(h.fd)
	}
}
