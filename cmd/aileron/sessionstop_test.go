package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// result is the end of an aileron that ran beside the test.
type result struct {
	out, errs string
	code      int
}

// until polls for what only a defect keeps from happening.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it did not happen: %s", what)
		}
	}
}

// listed waits until a session is listed, and returns its id.
func (o owner) listed() string {
	o.t.Helper()
	var dirs []string
	until(o.t, "a session is listed", func() bool {
		dirs, _ = filepath.Glob(filepath.Join(o.home, "sessions", "*", "session.json"))
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
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
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
		if out, errs, code := o.run("session", "stop", id); code != 0 || out != "" || errs != "aileron: "+id+" was asked to end\n" {
			t.Errorf("%q: session stop ends with %d: %q, %q", args, code, out, errs)
		}
		r := <-ended
		if r.code != stoppedCode || r.out != "" || !strings.Contains(r.errs, stoppedCause) {
			t.Errorf("%q: the session ends with %d: %q, %q; want %d and the cause", args, r.code, r.out, r.errs, stoppedCode)
		}
		show := o.ok("session", "show", id)
		for _, line := range []string{"state    ended\n", "cause    " + stoppedCause + "\n", "exit     143\n"} {
			if !strings.Contains(show, line) {
				t.Errorf("%q: session show prints no %q:\n%s", args, line, show)
			}
		}
	}
}

// What is asked of a session that is still being opened, but its end, is
// refused and waits for nothing.
func TestASessionThatStartsRefusesAllButItsStop(t *testing.T) {
	dir := t.TempDir()
	s := &session{dir: dir, home: filepath.Dir(dir), stopping: newStopRequest(), ready: make(chan struct{})}
	if err := s.control(); err != nil {
		t.Fatal(err)
	}
	defer s.uncontrol()
	call := func(method, path string) (string, error) {
		home := t.TempDir()
		if err := os.Mkdir(filepath.Join(home, "sessions"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(dir, filepath.Join(home, "sessions", "01X")); err != nil {
			t.Fatal(err)
		}
		raw, err := callControl(t.Context(), home, "01X", method, path, strings.NewReader("{}"))
		return string(raw), err
	}
	for _, path := range []string{"/healthz", "/v1/session", "/v1/audit", "/v1/audit/01X", "/v1/vault/status"} {
		if _, err := call("GET", path); err == nil || !strings.Contains(err.Error(), "503") {
			t.Errorf("GET %s: %v, want a refusal with 503", path, err)
		}
	}
	if _, err := call("POST", "/v1/vault/unlock"); err == nil || !strings.Contains(err.Error(), "503") {
		t.Errorf("POST /v1/vault/unlock: %v, want a refusal with 503", err)
	}
	if out, err := call("POST", "/v1/session/stop"); err != nil || !strings.Contains(out, "stopping") || !s.stopping.made() {
		t.Errorf("POST /v1/session/stop: %q, %v; the stop is made: %v", out, err, s.stopping.made())
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
	if r := <-ended; r.code != 137 || !strings.Contains(r.errs, stoppedCause) {
		t.Errorf("it ends with %d: %q; want 137 and the cause", r.code, r.errs)
	}
}

func TestAStopRequestEndsItsContexts(t *testing.T) {
	r := newStopRequest()
	before, cancel := r.withStop(t.Context())
	defer cancel()
	r.make()
	r.make()
	after, cancel := r.withStop(t.Context())
	defer cancel()
	for _, ctx := range []context.Context{before, after} {
		<-ctx.Done()
	}
	if !r.made() {
		t.Error("it is not made")
	}
}
