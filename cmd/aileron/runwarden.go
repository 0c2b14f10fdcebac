package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// The command of aileron run outlives an aileron that was killed. The kernel
// sends it a SIGTERM then (startTied), but not its children, and nothing
// restores the terminal that it had. So a second process, in a session of its
// own, waits at the end of a pipe as a box's warden does, ends what is left of
// the command, and restores the terminal.

// runWarden is the other process, seen from the first. A nil one is none.
type runWarden struct{ *warden }

// startRunWarden starts the warden of a command that is about to run on this
// host.
func (a *app) startRunWarden(session string) (*runWarden, error) {
	if a.protected == nil { // a test has the app in its own process
		return nil, nil // none
	}
	binary, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find aileron's own file: %w", err)
	}
	sid, err := unix.Getsid(0)
	if err != nil {
		return nil, fmt.Errorf("look at aileron's own process: %w", err)
	}
	cmd := exec.Command(binary, "sandbox", "run-warden", "--session", session, "--sid", strconv.Itoa(sid), "--pgid", strconv.Itoa(unix.Getpgrp())) //nolint:gosec,noctx // our own file; it must outlive us
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Dir = "/"
	if tty := a.childTerminal(); tty != nil {
		record, err := newWardTerminal(tty)
		if err != nil {
			return nil, err
		}
		defer record.close()
		cmd.Args = append(cmd.Args, "--terminal")
		cmd.ExtraFiles = []*os.File{wardTTY - 3: record.tty, wardRecord - 3: record.record}
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start the command's warden: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the command's warden: %w", err)
	}
	return &runWarden{&warden{cmd: cmd, in: in}}, nil
}

// watch names the command's process to the warden.
func (w *runWarden) watch(pid int) {
	if w != nil {
		_, _ = fmt.Fprintln(w.in, pid)
	}
}

// dismiss ends the warden.
func (w *runWarden) dismiss() {
	if w != nil {
		w.warden.dismiss(false)
	}
}

func newRunWardenCommand(a *app) *cobra.Command {
	left, terminal := orphans{}, false
	pgid := 0
	cmd := &cobra.Command{
		Use:    "run-warden",
		Short:  "Wait for the end of aileron run, and end its command if it was killed",
		Hidden: true,
		Args:   usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			child, dismissed, err := readWord(a.stdin)
			if err != nil || dismissed {
				return err
			}
			left.child = child
			left.end()
			if terminal {
				restoreRunTerminal(foregroundOf(left.sid) == pgid)
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&left.session, "session", "", "the session whose command it is")
	f.IntVar(&left.sid, "sid", 0, "the session of processes that the command belongs to")
	f.IntVar(&pgid, "pgid", 0, "the process group of aileron run")
	f.BoolVar(&terminal, "terminal", false, "restore the terminal of descriptor 3 by the record of descriptor 4")
	return cmd
}

// readWord reads the pipe to its end: the number of the command's process, and
// whether the warden was dismissed after it.
func readWord(r io.Reader) (child int, dismissed bool, err error) {
	in := bufio.NewScanner(io.LimitReader(r, 64))
	for in.Scan() {
		if in.Text() == "." {
			return child, true, nil
		}
		if child, err = strconv.Atoi(in.Text()); err != nil {
			return 0, false, fmt.Errorf("read the command's process: %w", err)
		}
	}
	return child, false, in.Err()
}

// foregroundOf is the process group to which the terminal of a session belongs;
// 0 when the session's leader has ended.
func foregroundOf(sid int) int {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", sid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')'):]), " ")
	fields := strings.Fields(rest)
	if len(fields) < 6 { // proc(5): tpgid is the eighth
		return 0
	}
	group, _ := strconv.Atoi(fields[5])
	return group
}
