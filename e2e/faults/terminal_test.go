package faults

import (
	"cmp"
	"os"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/term"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/sandbox"
)

// display is a terminal with what a program has written to it.
type display struct {
	person, tty *os.File
	before      *term.State
	seen        must.Output
}

func newDisplay(t *testing.T) *display {
	t.Helper()
	person, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tty.Close(); _ = person.Close() })
	d := &display{person: person, tty: tty}
	if d.before, err = term.GetState(int(tty.Fd())); err != nil {
		t.Fatal(err)
	}
	go func() { // ends with the terminal
		buf := make([]byte, 4096)
		for {
			n, err := person.Read(buf)
			if err != nil {
				return
			}
			_, _ = d.seen.Write(buf[:n])
		}
	}()
	return d
}

func (d *display) text() string { return d.seen.String() }

// cooked reports a line discipline that is as it was.
func (d *display) cooked(t *testing.T) bool {
	t.Helper()
	now := must.Get(term.GetState(int(d.tty.Fd())))(t)
	return reflect.DeepEqual(now, d.before)
}

// on starts a command of aileron's on the terminal.
func (d *display) on(u *user, args ...string) *running {
	u.t.Helper()
	r := &running{u: u, cmd: u.command(args...), ended: make(chan struct{})}
	r.cmd.Stdin, r.cmd.Stdout, r.cmd.Stderr = d.tty, d.tty, d.tty
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	must.Do(u.t, r.cmd.Start())
	r.self = process{r.cmd.Process.Pid, startOf(r.cmd.Process.Pid)}
	go func() { _ = r.cmd.Wait(); close(r.ended) }()
	u.t.Cleanup(func() {
		if _, ended := r.over(); !ended {
			_ = r.cmd.Process.Kill()
			<-r.ended
		}
		harness.WaitFor(u.t, "what the test left goes", func() bool { return !strings.Contains(u.left(), "process") })
	})
	return r
}

// What a full-screen program had switched on is switched off by the process that is
// left, before the last line is printed.
func TestATerminalIsRestoredWhenAFullScreenProgramIsCutOff(t *testing.T) {
	t.Parallel()
	needPodman(t)
	const (
		on     = `\033[?1049h\033[?1000;1006h\033[?2004h\033[?25l\033[>1u\033[?1h\033=drawn`
		undone = "\x1b[?1000l\x1b[?1006l\x1b[?2004l\x1b[?1l\x1b[?25h\x1b>\x1b[<1u\x1b[?1049l"
	)
	killGateway := func(r *running) { kill(r.u.t, r.gateway, syscall.SIGKILL) }
	killAileron := func(r *running) { r.signal(syscall.SIGKILL) }
	for _, c := range []struct {
		name, trap string // the trap is there before the program draws
		cut        func(r *running)
		last       string // after what is undone
		code       int
		engine     string // "": Podman
	}{
		{"the gateway is killed", "", killGateway,
			"aileron: run the sandbox: its gateway ended (killed), so the sandbox was ended too\r\n", 1, ""},
		{"aileron is asked to end", "trap 'exit 42' TERM; ",
			func(r *running) { r.signal(syscall.SIGTERM) }, "", 42, ""},
		{"the session is stopped", "trap 'exit 42' TERM; ",
			func(r *running) { r.u.must("session", "stop", r.session) }, "aileron: " + stopped + "\r\n", 42, ""},
		{"aileron is killed", "", killAileron, "", -1, ""},
		{"the gateway is killed, natively", "", killGateway,
			"aileron: run the sandbox: its first process was killed, so the sandbox was ended too\r\n", 1, sandbox.Native},
		{"aileron is killed, natively", "", killAileron, "", -1, sandbox.Native},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			u, d := newUser(t, cmp.Or(c.engine, "podman")), newDisplay(t)
			r := d.on(u, u.boxArgs(c.trap+"printf '"+on+"'; while :; do sleep 0.1; done")...)
			r.listed()
			harness.WaitFor(t, "the program draws", func() bool { return strings.Contains(d.text(), "drawn") })
			if d.cooked(t) {
				t.Error("the terminal is not in raw mode: this proves nothing")
			}
			r.findProcesses()
			c.cut(r)
			<-r.ended
			if code := r.cmd.ProcessState.ExitCode(); code != c.code {
				t.Errorf("it ends with %d, want %d: %q", code, c.code, d.text())
			}
			want := undone + c.last
			if !harness.Poll(patience, 10*time.Millisecond, func() bool {
				return strings.HasSuffix(d.text(), want) && d.cooked(t)
			}) {
				t.Errorf("the terminal is restored: %v; it shows %q, want %q at the end", d.cooked(t), d.text(), want)
			}
			if n := strings.Count(d.text(), "\x1b[?1049l"); n != 1 {
				t.Errorf("the screen is left %d times: %q", n, d.text())
			}
		})
	}
}

// A program that ends well leaves the terminal as it wants it.
func TestATerminalIsLeftAsAProgramThatEndsWellLeavesIt(t *testing.T) {
	t.Parallel()
	needPodman(t)
	u, d := newUser(t, "podman"), newDisplay(t)
	r := d.on(u, u.boxArgs(`printf '\033[?25lbye\n'`)...)
	<-r.ended
	harness.WaitFor(t, "its output", func() bool { return strings.HasSuffix(d.text(), "\x1b[?25lbye\r\n") })
	if code := r.cmd.ProcessState.ExitCode(); code != 0 || !d.cooked(t) {
		t.Errorf("it ends with %d, the line discipline is restored: %v", code, d.cooked(t))
	}
}
