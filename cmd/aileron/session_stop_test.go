package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/session"
)

// result is the end of an aileron that ran beside the test.
type result struct {
	out, errs string
	code      int
}

// until polls for what happens unless there is a defect.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	tick, end := time.NewTicker(5*time.Millisecond), time.After(patience)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("it did not happen: %s", what)
		}
	}
}

// listed waits until a session is listed, and returns its id.
func (o owner) listed() string {
	o.t.Helper()
	var dirs []string
	until(o.t, "a session is listed", func() bool {
		dirs, _ = filepath.Glob(filepath.Join(o.Flag, "sessions", "*", "session.json"))
		return len(dirs) == 1
	})
	return filepath.Base(filepath.Dir(dirs[0]))
}

// A session that waits for a passphrase is listed, and so it can be stopped.
func TestASessionIsStoppedWhileItWaitsForAPassphrase(t *testing.T) {
	o := newOwner(t)
	o.ok("connector", "install", exampleGitHub, "--yes")
	o.ok("binding", "setup", githubFQN, "--secret-file", o.file("token", "ghp-0123456789abcdef\n"))
	pipe := filepath.Join(t.TempDir(), "pipe")
	must.Do(t, syscall.Mkfifo(pipe, 0o600))
	defer func() { // the readers that are left
		if f, err := os.OpenFile(pipe, os.O_RDWR|syscall.O_NONBLOCK, 0); err == nil {
			_ = f.Close()
		}
	}()
	for _, args := range [][]string{
		{"run", "--passphrase-file", pipe, "--", "false"},
		{"proxy", "--passphrase-file", pipe}, {"proxy", "--passphrase-file", pipe, "--json"},
	} {
		ended := make(chan result)
		go func() {
			out, errs, code := o.run(args...)
			ended <- result{out, errs, code}
		}()
		id := o.listed()
		if list := o.ok("session", "list"); !strings.Contains(list, id+"  running") {
			t.Errorf("%q: session list prints %q", args, list)
		}
		if out, errs, code := o.run("session", "stop", id); code != 0 || out != "" ||
			errs != "aileron: "+id+" was asked to end\n" {
			t.Errorf("%q: session stop ends with %d: %q, %q", args, code, out, errs)
		}
		r := <-ended
		if r.code != session.StoppedCode || r.out != "" || !strings.Contains(r.errs, session.StoppedCause) {
			t.Errorf("%q: the session ends with %d: %q, %q; want %d and the cause", args, r.code, r.out, r.errs,
				session.StoppedCode)
		}
		show := o.ok("session", "show", id)
		for _, line := range []string{"state    ended\n", "cause    " + session.StoppedCause + "\n", "exit     143\n"} {
			if !strings.Contains(show, line) {
				t.Errorf("%q: session show prints no %q:\n%s", args, line, show)
			}
		}
	}
}

// A command that ignores SIGTERM does not keep a session from ending.
func TestAStoppedCommandThatIgnoresSIGTERMIsKilled(t *testing.T) {
	o := newOwner(t)
	up := filepath.Join(t.TempDir(), "up")
	ended := make(chan result)
	go func() {
		out, errs, code := o.run("run", "--", "sh", "-c", "trap '' TERM; : >"+up+"; while :; do sleep 0.1; done")
		ended <- result{out, errs, code}
	}()
	until(t, "the command begins", func() bool { _, err := os.Stat(up); return err == nil })
	id := o.listed()
	o.ok("session", "stop", id)
	if r := <-ended; r.code != 137 || !strings.Contains(r.errs, session.StoppedCause) {
		t.Errorf("it ends with %d: %q; want 137 and the cause", r.code, r.errs)
	}
}
