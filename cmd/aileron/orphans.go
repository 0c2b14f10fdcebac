package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// startTied starts a command that gets a SIGTERM when this process ends without
// waiting for it. The kernel sends it at the end of the thread that started the
// command, so that thread is kept until the command has ended.
func (p *protection) startTied(cmd *exec.Cmd) (ended <-chan error, err error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	started, done := make(chan error), make(chan error, 1)
	go func() {
		runtime.LockOSThread() // the thread ends with this goroutine
		err := p.start(cmd)
		started <- err
		if err == nil {
			done <- cmd.Wait()
		}
	}()
	return done, <-started
}

// orphans are the processes that are left of a killed session's command. They
// carry the session's id in their environment and have not left its session of
// processes: what a command detached on purpose is not one.
type orphans struct {
	session string
	sid     int
	child   int // the command itself, which the kernel has sent a SIGTERM
}

const (
	// hangupAfter is when processes get SIGHUP that go on after SIGTERM, as
	// interactive shells do.
	hangupAfter = time.Second
	orphanPause = 50 * time.Millisecond
)

// end ends the processes: SIGTERM, SIGHUP after a second, SIGKILL after
// stopGrace.
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

// orphan is a process, held by a descriptor of the kernel's.
type orphan struct{ pid, fd int }

func (p orphan) release() { _ = unix.Close(p.fd) }

// signal sends a signal, which a stopped process gets too.
func (p orphan) signal(sig syscall.Signal) {
	_ = unix.PidfdSendSignal(p.fd, sig, nil, 0)
	_ = unix.PidfdSendSignal(p.fd, unix.SIGCONT, nil, 0)
}

// find returns the orphans that live.
func (o orphans) find() (left []orphan) {
	entries, _ := os.ReadDir("/proc") // an error: none can be found
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue
		}
		// Looked at after the descriptor was opened: it is this process.
		if p := (orphan{pid, fd}); o.owns(pid) {
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
