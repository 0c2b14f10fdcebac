package launch

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// orphans are the processes that are left of a killed session's command. They have the session's id in their
// environment and have not left its session of processes: a process that the command detached on purpose is not one.
type orphans struct {
	session string
	sid     int
	child   int // the command itself, which the kernel has sent a SIGTERM
}

const (
	// hangupAfter is when processes get SIGHUP that ignore SIGTERM, as interactive shells do.
	hangupAfter = time.Second
	orphanPause = 50 * time.Millisecond
)

// end ends the processes: with SIGTERM, SIGHUP after a second, and SIGKILL after stopGrace.
func (o orphans) end() {
	sent := map[int]syscall.Signal{o.child: syscall.SIGTERM}
	for waited := time.Duration(0); waited < 2*stopGrace; waited += orphanPause {
		sig := syscall.SIGTERM
		switch {
		case waited >= stopGrace:
			sig = syscall.SIGKILL
		case waited >= hangupAfter:
			sig = syscall.SIGHUP
		}
		left := o.find()
		if len(left) == 0 {
			return
		}
		for _, p := range left {
			if sent[p.pid] != sig || sig == syscall.SIGKILL {
				sent[p.pid] = sig
				p.signal(sig)
			}
			p.release()
		}
		time.Sleep(orphanPause)
	}
}

// orphan is a process, held by its pidfd.
type orphan struct{ pid, pidfd int }

func (p orphan) release() { _ = unix.Close(p.pidfd) }

// signal sends a signal, and continues the process if it is stopped.
func (p orphan) signal(sig syscall.Signal) {
	_ = unix.PidfdSendSignal(p.pidfd, sig, nil, 0)
	_ = unix.PidfdSendSignal(p.pidfd, unix.SIGCONT, nil, 0)
}

// find returns the orphans that live.
func (o orphans) find() (left []orphan) {
	entries, _ := os.ReadDir("/proc") // an error: none can be found
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		pidfd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue
		}
		// Checked after the pidfd was opened: it is this process.
		if p := (orphan{pid, pidfd}); o.owns(pid) {
			left = append(left, p)
		} else {
			p.release()
		}
	}
	return left
}

// owns reports whether a process is an orphan of the session.
func (o orphans) owns(pid int) bool {
	if sid, err := unix.Getsid(pid); err != nil || sid != o.sid {
		return false
	}
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid)) // empty for one that has ended
	return err == nil && strings.Contains("\x00"+string(env), "\x00AILERON_SESSION_ID="+o.session+"\x00")
}
