package launch

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/internal/procid"
	"github.com/ALRubinger/aileron/internal/system"
)

// The command of aileron run outlives an aileron that was killed. The kernel then sends it a SIGTERM (see startTied),
// but not its children, and nothing restores its terminal. So a reaper waits at the end of a pipe as that of a sandbox
// does, ends what is left of the command, and restores the terminal.

// hostReaper is the other process, seen from aileron. A nil one does nothing.
type hostReaper struct{ *reaper }

// startHostReaper starts the reaper of a command that is about to run on this host.
func (l *Launcher) startHostReaper(session string) (*hostReaper, error) {
	if l.WithoutReaper {
		return nil, nil //nolint:nilnil // none
	}
	binary, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find aileron's own file: %w", err)
	}
	sid, err := unix.Getsid(0)
	if err != nil {
		return nil, fmt.Errorf("look up aileron's own process: %w", err)
	}
	//nolint:gosec,noctx // our own file; it must outlive us
	cmd := exec.Command(binary, "sandbox", "run-warden",
		"--session", session, "--sid", strconv.Itoa(sid), "--pgid", strconv.Itoa(unix.Getpgrp()))
	cmd.Dir = "/"
	var terminal *sharedTerminal
	if l.Terminal != nil {
		if terminal, err = shareTerminal(l.Terminal); err != nil {
			return nil, err
		}
		defer terminal.close()
	}
	r, err := startReaper(cmd, terminal)
	if err != nil {
		return nil, err
	}
	return &hostReaper{r}, nil
}

// watch names the command's process to the reaper.
func (r *hostReaper) watch(pid int) {
	if r != nil {
		_, _ = fmt.Fprintln(r.in, pid)
	}
}

// dismiss ends the reaper.
func (r *hostReaper) dismiss() {
	if r != nil {
		r.reaper.dismiss(false)
	}
}

// CommandRemains is what a killed launch may leave of a command on this host.
type CommandRemains struct {
	Session  string
	SID      int  // the session of processes that the command belongs to
	PGID     int  // the process group of the launch
	Terminal bool // the reaper shares the launch's terminal
}

// ReapCommand is the reaper's process. It waits until the launch has ended, which its end of pipe shows, and ends the
// processes that remain unless it was dismissed.
func ReapCommand(pipe io.Reader, r CommandRemains) error {
	child, isDismissed, err := readChild(pipe)
	if err != nil || isDismissed {
		return err
	}
	left := orphans{session: r.Session, sid: r.SID, child: child}
	left.end()
	if r.Terminal {
		restoreHostTerminal(foregroundOf(r.SID) == r.PGID)
	}
	return nil
}

// readChild reads the pipe to its end. It returns the process id of the command, and whether the reaper was dismissed
// after it.
func readChild(r io.Reader) (child int, isDismissed bool, err error) {
	in := bufio.NewScanner(io.LimitReader(r, 64))
	for in.Scan() {
		if in.Text() == dismissed {
			return child, true, nil
		}
		if child, err = strconv.Atoi(in.Text()); err != nil {
			return 0, false, fmt.Errorf("read the command's process: %w", err)
		}
	}
	return child, false, in.Err()
}

// foregroundOf returns the process group to which the terminal of a session belongs, or 0 if the session's leader has
// ended.
func foregroundOf(sid int) int {
	stat, err := procid.Stat(sid)
	if err != nil {
		return 0
	}
	group, _ := strconv.Atoi(stat[procid.StatTPGID])
	return group
}

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
	_ = system.SignalProcess(p.pidfd, sig)
	_ = system.SignalProcess(p.pidfd, unix.SIGCONT)
}

// find returns the orphans that live.
func (o orphans) find() (left []orphan) {
	entries, _ := os.ReadDir("/proc") // an error: none can be found
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		pidfd, err := system.OpenProcess(pid)
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
