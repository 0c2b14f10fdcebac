package engine

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A service of ours has an idle time only for the grace that comes with it.
func TestAHeldServiceStaysAndOneThatIsReleasedEnds(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short: needs an engine")
	}
	if _, err := exec.LookPath("podman"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("there is no podman, and in CI this test must run; scripts/prepare installs it")
		}
		t.Skip("there is no podman: scripts/prepare installs it")
	}
	dir, err := os.MkdirTemp("", "held-") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	conf := filepath.Join(dir, "containers.conf")
	if err := os.WriteFile(conf, podmanConf(), 0o600); err != nil {
		t.Fatal(err)
	}
	serve := func(name string) (socket string, ended <-chan struct{}) {
		socket = filepath.Join(dir, name)
		cmd := exec.Command("podman", "system", "service", "--time", "2", "unix://"+socket)
		if os.Getenv("CONTAINERS_CONF") == "" {
			cmd.Env = append(os.Environ(), "CONTAINERS_CONF="+conf)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() { _ = cmd.Wait(); close(done) }()
		t.Cleanup(func() { _ = cmd.Process.Kill(); <-done })
		return socket, done
	}
	var conn net.Conn
	var ended <-chan struct{}
	for try := 0; conn == nil; try++ { // on a busy machine one may end before it is held
		var socket string
		socket, ended = serve(fmt.Sprint("held-", try))
		for over := false; conn == nil && !over; {
			conn, _ = holdService(t.Context(), socket)
			select {
			case <-ended:
				conn, over = nil, true
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
	defer conn.Close()
	// Two that are not held, one after the other, take longer than it would.
	for _, name := range []string{"first", "second"} {
		_, over := serve(name)
		<-over
	}
	select {
	case <-ended:
		t.Fatal("the service has ended, although it is held")
	default:
	}
	_ = conn.Close()
	<-ended
}

// fakePodman puts a program called podman first on the PATH.
func fakePodman(t *testing.T, script string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "fake-") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.WriteFile(filepath.Join(dir, "podman"), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("TMPDIR", dir)
	t.Cleanup(func() {
		if left, _ := filepath.Glob(filepath.Join(dir, "aileron-*")); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	})
}

func TestAServiceThatDoesNotStartIsExplained(t *testing.T) {
	for _, c := range []struct{ name, script, want string }{
		{"it ends", "echo 'starting' >&2; echo 'Error: database is broken' >&2; exit 125",
			"its service ended (exit status 125): Error: database is broken"},
		{"it is killed, without a word", "kill -KILL $$", "its service ended (signal: killed): it said nothing"},
		{"it is stopped", "echo 'Error: half a word' >&2; kill -STOP $$", "is stopped (SIGSTOP); kill -CONT"},
		{"it is stopped, and said why", "echo 'Error: half a word' >&2; kill -STOP $$", "its last error: Error: half a word"},
		{"it never listens", "exec sleep 600", "podman responds, but makes no progress: waited"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if testing.Short() && !strings.HasPrefix(c.want, "its service ended") {
				t.Skip("-short: a service that is silent is given up after ten seconds")
			}
			fakePodman(t, c.script)
			p := Patience{} // on a busy machine, the program itself may begin late
			if c.name == "it never listens" {
				p = Patience{Silent: 3 * time.Second, Limit: 4 * time.Second}
			}
			_, err := startService(t.Context(), p)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("startPodman = %v, want %q", err, c.want)
			}
		})
	}
}

// A service that waits for the locks of another Podman is waited for, and the
// person sees that.
func TestASlowServiceIsWaitedFor(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: needs an engine")
	}
	real, err := exec.LookPath("podman")
	if err != nil {
		t.Skip("there is no podman: scripts/prepare installs it")
	}
	gate := filepath.Join(t.TempDir(), "gate")
	fakePodman(t, "until [ -e "+gate+" ]; do sleep 0.1; done; exec "+real+" \"$@\"")
	var steps []string
	e, err := startService(t.Context(), Patience{Report: func(w Wait) {
		if steps = append(steps, w.Step); len(steps) == 1 {
			if err := os.WriteFile(gate, nil, 0o600); err != nil {
				t.Error(err)
			}
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	e.Close()
	if len(steps) == 0 || steps[0] != "start its service" {
		t.Errorf("reported %q, want the start of the service first", steps)
	}
}
