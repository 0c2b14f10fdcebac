package faults

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
)

// noted waits for a file of the project that holds the number of a process.
func (u *user) noted(name string) process {
	u.t.Helper()
	var p process
	harness.WaitFor(u.t, name+" is written", func() bool {
		data, _ := os.ReadFile(filepath.Join(u.project, name))
		pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
		p = process{pid, startOf(pid)}
		return err == nil && strings.HasSuffix(string(data), "\n")
	})
	return p
}

// A killed aileron run takes its command with it, and what that has started.
func TestAKilledRunLeavesNoProcess(t *testing.T) {
	for _, c := range []struct {
		name, script string
		wards        bool // the warden lives
		all          bool // the command's child ends too
	}{
		{"a command and its child", "sleep 600 & echo $! > child; echo $$ > command; wait", true, true},
		{"they ignore what asks for their end",
			"trap '' TERM HUP; sleep 600 & echo $! > child; echo $$ > command; while :; do sleep 0.1; done", true, true},
		{"the child is stopped", "sleep 600 & kill -STOP $!; echo $! > child; echo $$ > command; wait", true, true},
		{"the command ends first", "sh -c 'echo $$ > child; exec sleep 600' & echo $$ > command; exec sleep 600", true, true},
		{"the warden is killed too", "sleep 600 & echo $! > child; echo $$ > command; exec sleep 600", false, false},
		{"the child is detached on purpose", "setsid sh -c 'echo $$ > child; exec sleep 600' & echo $$ > command; wait", true,
			false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			u := newRunner(t)
			r := u.begin("run", "--", "sh", "-c", "cd "+u.project+"; "+c.script)
			command, child := u.noted("command"), u.noted("child")
			ward := r.child("run-warden")
			if !c.wards {
				kill(t, ward, syscall.SIGKILL)
			}
			r.signal(syscall.SIGKILL)
			harness.WaitFor(t, "the command ends", func() bool { return !command.lives() })
			harness.WaitFor(t, "the warden ends", func() bool { return !ward.lives() })
			if child.lives() == c.all {
				t.Errorf("the command's child lives: %v", child.lives())
			}
			if child.lives() {
				kill(t, child, syscall.SIGKILL)
			}
			<-r.ended
		})
	}
}

// What ends by itself needs no warden, and leaves none.
func TestARunThatEndsDismissesItsWarden(t *testing.T) {
	t.Parallel()
	u := newRunner(t)
	r := u.begin("run", "--", "sh", "-c", "cd "+u.project+"; sleep 600 & echo $! > child; exit 3")
	child := u.noted("child")
	if res := r.end(); res.code != 3 || res.err != "" {
		t.Errorf("exit %d with %q, want 3", res.code, res.err)
	}
	if !child.lives() {
		t.Error("what the command left in the background on purpose was ended")
	} else {
		kill(t, child, syscall.SIGKILL)
	}
	if left := u.left(); left != "" {
		t.Errorf("left: %s", left)
	}
}

// newRunner is a user without an engine.
func newRunner(t *testing.T) *user {
	t.Helper()
	template := must.Get(bound())(t)
	dir := t.TempDir()
	u := &user{t: t, engine: "true", home: filepath.Join(dir, "h"), project: filepath.Join(dir, "p")}
	must.Do(t, os.Mkdir(u.project, 0o755))
	harness.Copy(t, template, u.home)
	return u
}

// A full-screen program that a killed aileron run leaves ends, and its terminal
// is restored, where no shell does that: the session's leader is a script.
func TestAKilledRunRestoresItsTerminal(t *testing.T) {
	for name, trap := range map[string]string{"a program that ends when it is asked to": "",
		"one that does not": "trap '' TERM HUP; "} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u, d := newRunner(t), newDisplay(t)
			inner := trap + `printf '\033[?1049h\033[?1000h\033[?25l'; stty raw -echo; echo $$ > ` + u.project +
				`/command; printf drawn; while :; do sleep 0.1; done`
			cmd := exec.Command("sh", "-c", `"$@"; sleep 600`, "sh", binary, "run", "--", "sh", "-c", inner)
			cmd.Env = append(u.command().Env, "TERM=xterm")
			cmd.Stdin, cmd.Stdout, cmd.Stderr = d.tty, d.tty, d.tty
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
			must.Do(t, cmd.Start())
			t.Cleanup(func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); _ = cmd.Wait() })
			command := u.noted("command")
			harness.WaitFor(t, "the program draws", func() bool { return strings.HasSuffix(d.text(), "drawn") })
			if d.cooked(t) {
				t.Error("the terminal is not in raw mode: this proves nothing")
			}
			aileron, ward := parentOf(t, command), process{}
			for _, pid := range pids() {
				if parent(pid) == aileron.pid && slices.Contains(args(pid), "run-warden") {
					ward = process{pid, startOf(pid)}
				}
			}
			kill(t, aileron, syscall.SIGKILL)
			harness.WaitFor(t, "the command ends", func() bool { return !command.lives() })
			harness.WaitFor(t, "the warden ends", func() bool { return !ward.lives() })
			if !d.cooked(t) {
				t.Fatal("the line discipline is not restored")
			}
			for _, off := range []string{"\x1b[?1047l", "\x1b[?1000l", "\x1b[?25h"} {
				harness.WaitFor(t, fmt.Sprintf("%q switches off what was on", off), func() bool {
					_, after, _ := strings.Cut(d.text(), "drawn")
					return strings.Contains(after, off)
				})
			}
		})
	}
}

func parentOf(t *testing.T, p process) process {
	t.Helper()
	pid := parent(p.pid)
	if pid < 2 {
		t.Fatalf("the parent of %d: %d", p.pid, pid)
	}
	return process{pid, startOf(pid)}
}

// parent is a process's parent; 0 for one that has ended.
func parent(pid int) (parent int) {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, _ := strings.Cut(string(status), "\nPPid:")
	_, _ = fmt.Sscan(rest, &parent)
	return parent
}
