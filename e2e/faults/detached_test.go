package faults

import (
	"bytes"
	"errors"

	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
)

// detachArgs is boxArgs for a session that is left in the background.
func (u *user) detachArgs(script string) []string {
	return slices.Insert(u.boxArgs(script), 2, "--detach")
}

// detach starts a detached session, and waits until its script has made the file up.
func (u *user) detach(script string) *running {
	u.t.Helper()
	res := u.must(u.detachArgs(marked(script))...)
	r := &running{u: u, session: strings.TrimSpace(res.out), ended: make(chan struct{})}
	if !strings.Contains(res.err, "aileron session attach "+r.session) {
		u.t.Fatalf("it prints %q and %q", res.out, res.err)
	}
	r.self = u.detachedProcess(r.session)
	u.t.Cleanup(func() {
		if r.self.lives() {
			_ = u.run("session", "stop", r.session)
		}
		harness.WaitFor(u.t, "the detached session ends", func() bool { return !r.self.lives() && u.left() == "" })
	})
	harness.WaitFor(u.t, "the box begins", func() bool { return u.made("up") })
	r.findProcesses()
	return r
}

// detachedProcess returns the process of a session.
func (u *user) detachedProcess(id string) process {
	u.t.Helper()
	s := u.showSession(id)
	pid, _ := s["pid"].(float64)
	if s["state"] != "running" || s["detached"] != true || pid < 2 {
		u.t.Fatalf("session show prints %v", s)
	}
	return process{int(pid), startOf(int(pid))}
}

// awaits waits until a terminal shows a word.
func (d *display) awaits(t *testing.T, word string) {
	t.Helper()
	harness.WaitFor(t, "the terminal shows "+word, func() bool { return strings.Contains(d.text(), word) })
}

func (d *display) resize(t *testing.T, rows, columns uint16) {
	t.Helper()
	must.Do(t, pty.Setsize(d.tty, &pty.Winsize{Rows: rows, Cols: columns}))
}

func (d *display) types(t *testing.T, text string) {
	t.Helper()
	if _, err := d.person.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

// ends waits for the end of a command on a terminal, which is then as it was.
func (r *running) endsOn(d *display, code int) {
	r.u.t.Helper()
	<-r.ended
	if got := r.cmd.ProcessState.ExitCode(); got != code {
		r.u.t.Errorf("it ends with %d, want %d: %q", got, code, d.text())
	}
	if !d.cooked(r.u.t) {
		r.u.t.Errorf("the terminal is left in raw mode: %q", d.text())
	}
}

// screenful is a program of a full screen, which answers to a line.
const screenful = `trap 'echo size $(stty size)' WINCH
	printf '\033[?1049h\033[?25lbegun\r\n'
	` + mark + `
	while :; do
		read -r line || continue
		case $line in end) printf '\033[?25h\033[?1049l'; exit 7;; *) echo "got $line";; esac
	done`

func TestADetachedSessionIsReachedFromAnyTerminal(t *testing.T) {
	t.Parallel()
	places(t, func(t *testing.T, u *user) {
		r := u.detach(screenful)
		// One terminal sees the screen drawn in its size, and is heard.
		first := newDisplay(t)
		first.resize(t, 33, 111)
		one := first.on(u, "session", "attach", r.session[:len(r.session)-2])
		first.awaits(t, "\x1b[?1049h\x1b[?25l") // as the program had left it before
		first.awaits(t, "size 33 111")
		first.types(t, "hello\r")
		first.awaits(t, "got hello")
		if s := u.showSession(r.session); s["attached"] != true {
			t.Errorf("session show prints %v while a terminal is attached", s)
		}
		// Another takes its place.
		second := newDisplay(t)
		two := second.on(u, "session", "attach")
		second.awaits(t, "this one takes its place")
		one.endsOn(first, 1)
		first.awaits(t, "another terminal was attached")
		first.awaits(t, "\x1b[?25h\x1b[?1049l")
		second.types(t, "there\r")
		second.awaits(t, "got there")
		// A terminal that goes away leaves the session alone.
		two.signal(syscall.SIGHUP)
		two.endsOn(second, 128+int(syscall.SIGHUP))
		third := newDisplay(t)
		three := third.on(u, "session", "attach", r.session)
		third.awaits(t, "ctrl-p,ctrl-q detaches")
		third.types(t, "again\r")
		third.awaits(t, "got again")
		third.types(t, "\x10\x11")
		three.endsOn(third, 0)
		harness.WaitFor(t, "nothing is attached", func() bool { return u.showSession(r.session)["attached"] == nil })
		// Its end is the end of the attachment.
		fourth := newDisplay(t)
		four := fourth.on(u, "session", "attach", r.session)
		fourth.awaits(t, "ctrl-p,ctrl-q detaches")
		fourth.types(t, "end\r")
		four.endsOn(fourth, 7)
		fourth.awaits(t, "exit code 7")
		harness.WaitFor(t, "the session is over", func() bool { return !r.self.lives() })
		r.nothing()
		r.closed(7, "the command ended")
		logs := u.must("session", "logs", r.session)
		for _, want := range []string{"begun", "got hello", "got there", "got again"} {
			if !strings.Contains(logs.out, want) {
				t.Errorf("session logs has no %q: %q", want, logs.out)
			}
		}
		if !strings.Contains(logs.err, "exit code 7") {
			t.Errorf("session logs ends with %q", logs.err)
		}
		if res := u.run("session", "attach", r.session); res.code != 1 || !strings.Contains(res.err, "it has ended") {
			t.Errorf("exit %d: %s", res.code, res.err)
		}
	})
}

// The box is gone, and the terminal that was attached is as it was.
func TestAKilledDetachedSessionLeavesNothingButItsOutput(t *testing.T) {
	t.Parallel()
	places(t, func(t *testing.T, u *user) {
		r := u.detach(screenful)
		d := newDisplay(t)
		d.resize(t, 33, 111)
		attached := d.on(u, "session", "attach", r.session)
		d.awaits(t, "size 33 111")
		kill(t, r.self, syscall.SIGKILL)
		attached.endsOn(d, 1)
		d.awaits(t, "the connection to the session was closed")
		d.awaits(t, "\x1b[?25h\x1b[?1049l")
		harness.WaitFor(t, "the box goes", func() bool { return !r.box.lives() && !r.gateway.lives() })
		if s := u.showSession(r.session); s["state"] != "unclean" || s["attached"] != nil {
			t.Errorf("session show prints %v", s)
		}
		if res := u.run("doctor"); !strings.Contains(res.out+res.err, "1 session was killed") {
			t.Errorf("doctor prints %s%s", res.out, res.err)
		}
		if logs := u.must("session", "logs", r.session); !strings.Contains(logs.out, "begun") {
			t.Errorf("session logs prints %q", logs.out)
		}
		u.must("run", "--", "true") // sweeps
		harness.WaitFor(t, "the reaper ends", func() bool { return u.left() == "" })
		r.nothing()
	})
}

// What ends a launch before the command has begun is printed where it was launched, and leaves nothing.
func TestADetachedSessionThatDoesNotBeginIsReported(t *testing.T) {
	t.Parallel()
	places(t, func(t *testing.T, u *user) {
		args := u.detachArgs("")
		res := u.run(append(args[:slices.Index(args, "--")+1], "no-such-command")...)
		if res.code != 127 || !strings.Contains(res.err, "no such ") || res.out != "" {
			t.Errorf("exit %d with %q and %q", res.code, res.out, res.err)
		}
		if entries, _ := os.ReadDir(filepath.Join(u.home, "detached")); len(entries) > 0 || u.left() != "" {
			t.Errorf("left: %v %s", entries, u.left())
		}
	})
}

// A launch that is given up before the command has begun leaves nothing, whatever ends it.
func TestADetachedSessionThatIsGivenUpDoesNotBegin(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		sig  syscall.Signal
		code int
	}{"interrupted": {syscall.SIGINT, 130}, "hung up": {syscall.SIGHUP, 130}, "killed": {syscall.SIGKILL, -1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newUser(t, "podman")
			// The session waits for its roots.
			roots, fifo := u.origin.Roots, filepath.Join(filepath.Dir(u.home), "roots")
			must.Do(t, syscall.Mkfifo(fifo, 0o600))
			line := u.detachArgs("echo up > up; sleep 600")
			line[slices.Index(line, roots)] = fifo
			r := u.begin(line...)
			w := must.Get(os.OpenFile(fifo, os.O_WRONLY, 0))(t) // waits for the reader
			r.signal(c.sig)
			if c.sig == syscall.SIGKILL {
				<-r.ended
			}
			raw, err := os.ReadFile(roots)
			if err == nil {
				_, err = w.Write(raw)
			}
			must.Do(t, errors.Join(err, w.Close()))
			if res := r.end(); res.code != c.code || res.out != "" {
				t.Errorf("exit %d with %q and %q, want %d", res.code, res.out, res.err, c.code)
			}
			harness.WaitFor(t, "its process ends", func() bool {
				return u.left() == "" && !slices.ContainsFunc(pids(), func(pid int) bool {
					return slices.Contains(args(pid), fifo)
				})
			})
			if entries, _ := os.ReadDir(filepath.Join(u.home, "detached")); len(entries) > 0 || u.made("up") {
				t.Errorf("left: %v; the command began: %v", entries, u.made("up"))
			}
		})
	}
}

// The key of the vault is not in the environment or the arguments of the detached process, and a secret that the
// box prints is not in the files of its output.
func TestASecretIsNotKeptInTheOutputOfADetachedSession(t *testing.T) {
	t.Parallel()
	places(t, func(t *testing.T, u *user) {
		must.Do(t, os.WriteFile(filepath.Join(u.project, "leak"), []byte(secret+"\n"), 0o644))
		r := u.detach(until("show") + get + `; cat leak; echo shown; ` + until("end"))
		for _, name := range []string{"environ", "cmdline"} {
			raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(r.self.pid), name))
			if err == nil && (bytes.Contains(raw, []byte(passphrase)) || bytes.Contains(raw, []byte("AGE-SECRET-KEY"))) {
				t.Errorf("the %s of the process holds what opens the vault", name)
			}
		}
		d := newDisplay(t)
		d.on(u, "session", "attach", r.session)
		d.awaits(t, "detaches")
		u.say("show")
		d.awaits(t, "shown")
		if !strings.Contains(d.text(), secret) {
			t.Errorf("the person sees %q: this proves nothing", d.text())
		}
		u.say("end")
		harness.WaitFor(t, "the session ends", func() bool { return !r.self.lives() })
		logs := u.must("session", "logs", r.session)
		if strings.Contains(logs.out, secret) || !strings.Contains(logs.out, "shown") {
			t.Errorf("session logs prints %q", logs.out)
		}
		if seen := u.origin.Seen(); len(seen) != 1 {
			t.Errorf("%d requests arrived, want 1", len(seen))
		}
		err := filepath.WalkDir(filepath.Join(u.home, "detached"), func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := e.Info()
			if err != nil || info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s has mode %v, %v", path, info.Mode(), err)
			}
			if raw, err := os.ReadFile(path); err == nil && bytes.Contains(raw, []byte(secret)) {
				t.Errorf("the secret is in %s", path)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}
