package main

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit"
)

// Why a session ended, or never began, is what show is asked for.
func TestSessionShowSaysTheCause(t *testing.T) {
	c := newCLI(t)
	started := func(id string) audit.Row {
		return audit.Row{Event: audit.EventSessionStarted, SessionID: id, Fields: map[string]any{"agent": "curl", "mode": "podman", "sealed": true}}
	}
	ended := func(id, reason, cause string) audit.Row {
		return audit.Row{Event: audit.EventSessionEnded, SessionID: id, Reason: reason, Fields: map[string]any{"exit_code": 1, "cause": cause}}
	}
	disabled := func(id, reason, cause string) audit.Row {
		return audit.Row{Event: audit.EventSandboxDisabled, SessionID: id, Decision: audit.DecisionDisabled, Reason: reason,
			Fields: map[string]any{"agent": "curl", "mode": "podman", "cause": cause}}
	}
	c.write(
		disabled("01REFUSED", reasonUnsealed, "the engine runs elsewhere"),
		started("01OPTOUT"), disabled("01OPTOUT", reasonOptOut, "--sandbox-proxy=off"), ended("01OPTOUT", "", "the command ended"),
		started("01LACKS"), disabled("01LACKS", reasonPreflight, "there is no sh"), ended("01LACKS", "", "there is no sh"),
		started("01SWEPT"), ended("01SWEPT", "unclean", uncleanCause),
		started("01KILLED"),
	)
	for id, want := range map[string][]string{
		"01REFUSED": {"state    refused\n", "agent    curl\n", "mode     podman\n", "disabled unsupported_sandbox_mode: the engine runs elsewhere\n"},
		"01OPTOUT":  {"state    ended\n", "disabled user_opt_out: --sandbox-proxy=off\n", "cause    the command ended\n"},
		"01LACKS":   {"state    ended\n", "disabled preflight_failed: there is no sh\n", "cause    there is no sh\n"},
		"01SWEPT":   {"state    unclean\n", "cause    " + uncleanCause + "\n"},
		"01KILLED":  {"state    unclean\n", "cause    " + uncleanCause + "\n"},
	} {
		out := c.ok("session", "show", id)
		for _, line := range want {
			if !strings.Contains(out, line) {
				t.Errorf("session show %s has no %q:\n%s", id, line, out)
			}
		}
	}
	s := decode[sessionState](t, c.ok("session", "show", "01REFUSED", "--json"))
	if s.State != "refused" || s.Disabled == nil || s.Disabled.Reason != reasonUnsealed || s.Disabled.Cause != "the engine runs elsewhere" {
		t.Errorf("as JSON it is %+v, %+v", s, s.Disabled)
	}
	if s := decode[sessionState](t, c.ok("session", "show", "01SWEPT", "--json")); s.State != "unclean" || s.Cause != uncleanCause || s.Disabled != nil {
		t.Errorf("as JSON it is %+v", s)
	}
}

// A session that was killed before its first row has left its directory only.
func TestASessionOfWhichOnlyTheDirectoryIsLeftIsUnclean(t *testing.T) {
	c := newCLI(t)
	dir := filepath.Join(c.home, "sessions", "01LEFT")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "session.json"), []byte(`{"id":"01LEFT","pid":1,"agent":"curl","mode":"podman"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := c.ok("session", "show", "01LEFT"); !strings.Contains(out, "state    unclean\n") || !strings.Contains(out, "cause    "+uncleanCause+"\n") {
		t.Errorf("session show prints\n%s", out)
	}
}

// flushed is an answer that has left when it is flushed.
type flushed struct {
	*httptest.ResponseRecorder
	flush func()
}

func (f flushed) Flush() { f.flush() }

// The end of a session does not wait for whoever asked for it.
func TestAStopIsAnsweredBeforeTheEndBegins(t *testing.T) {
	s := &session{stopping: newStopRequest()}
	w := flushed{ResponseRecorder: httptest.NewRecorder()}
	left := ""
	w.flush = func() {
		if s.stopping.made() {
			t.Error("the session ends before the answer has left")
		}
		left = w.Body.String()
	}
	s.controlStop(w, nil)
	if want := "{\"status\":\"stopping\"}\n"; left != want || w.Code != 202 || w.Header().Get("Content-Length") != strconv.Itoa(len(want)) {
		t.Errorf("%d %v %q left, want 202 and the whole of %q", w.Code, w.Header(), left, want)
	}
	if !s.stopping.made() {
		t.Error("the session is not asked to end")
	}
}

// waitsFor waits until this process has a second descriptor of a locked file
// open: who opens it tries to lock it.
func waitsFor(t *testing.T, path string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		fds, err := filepath.Glob("/proc/self/fd/*")
		if err != nil {
			t.Fatal(err)
		}
		open := 0
		for _, fd := range fds {
			if at, err := os.Readlink(fd); err == nil && at == path {
				open++
			}
		}
		if open > 1 {
			return
		}
	}
	t.Fatalf("nothing waits for %s", path)
}

// A process that stood still before it had its lock may find its directory
// swept away.
func TestASessionThatWasSweptBeforeItsLockHasADirectory(t *testing.T) {
	s := &session{app: &app{}, id: "01LATE", home: t.TempDir()}
	dir := filepath.Join(s.home, "sessions", s.id)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	sweep, err := s.app.lockDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	made := make(chan error)
	go func() { made <- s.makeDir() }()
	waitsFor(t, filepath.Join(dir, "lock"))
	if err := os.Rename(dir, filepath.Join(t.TempDir(), "swept")); err != nil {
		t.Fatal(err)
	}
	_ = sweep.Close()
	if err := <-made; err != nil {
		t.Fatal(err)
	}
	defer s.lock.Close()
	if _, err := os.Stat(filepath.Join(dir, "session.json")); err != nil || !alive(s.home, s.id) {
		t.Errorf("its description: %v; alive: %v", err, alive(s.home, s.id))
	}
}
