package engine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/hint"
)

// forever is a call that the engine never answers.
func forever(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }

func TestAnEngineIsWaitedForAsLongAsItLives(t *testing.T) {
	answers := func(context.Context) error { return nil }
	silent := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	refuses := func(context.Context) error { return errors.New("connection refused") }
	for _, c := range []struct {
		name string
		ping func(context.Context) error
		p    Patience
		said string
		min  time.Duration // it is not given up before
		want string
		hint string
	}{
		{"it answers", answers, Patience{}, "", DefaultLimit, "podman responds, but makes no progress: " +
			"waited 2m0s for it to make a container, and [sandbox] engine_timeout", "raise engine_timeout in [sandbox]"},
		{"it answers, and little is allowed", answers, Patience{Limit: 7 * time.Second}, "", 7 * time.Second,
			"waited 7s for it to make a container", "look at what podman does"},
		{"it does not respond", silent, Patience{}, "", time.Minute, "podman does not respond: " +
			"waited 1m0s for it to make a container, and for 1m0s there was no sign of life", "start podman again"},
		{"it refuses connections", refuses, Patience{}, "", time.Minute,
			"no sign of life; its last error: connection refused", "start podman again"},
		{"it logged the cause", refuses, Patience{}, "no space left on device", time.Minute,
			"its last error: no space left on device", "run it again"},
		{"it has not opened its socket, and is no process", nil, Patience{}, "", time.Minute, "no sign of life",
			"start podman again"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &liveness{kind: "podman", patience: c.p, ping: c.ping}
				if c.said != "" { // of a service that aileron has started
					p.said = func() string { return c.said }
				}
				began := time.Now()
				err := p.await(t.Context(), "make a container", forever)
				if waited := (*WaitError)(nil); !errors.As(err, &waited) || !strings.Contains(err.Error(), c.want) {
					t.Errorf("await = %v, want a WaitError with %q", err, c.want)
				}
				if got := hint.Of(fmt.Errorf("start: %w", err)); !strings.Contains(got, c.hint) {
					t.Errorf("the hint is %q, want %q", got, c.hint)
				}
				if took := time.Since(began); took < c.min {
					t.Errorf("given up after %v, want at least %v", took, c.min)
				}
			})
		})
	}
}

func TestASignOfLifeNowAndThenIsEnough(t *testing.T) {
	slowly := func(ctx context.Context) error {
		select {
		case <-time.After(40 * time.Second):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	synctest.Test(t, func(t *testing.T) {
		p := &liveness{kind: "docker", ping: slowly}
		err := p.await(t.Context(), "start a container", func(ctx context.Context) error {
			select {
			case <-time.After(DefaultLimit - 10*time.Second):
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
		if err != nil {
			t.Errorf("await = %v, want the call's own end", err)
		}
	})
}

// A terminal that Ctrl-S holds up, as aileron that Ctrl-Z stops, sees nothing.
func TestATimeWithoutALookIsNoSilence(t *testing.T) {
	for range 32 { // of a look and a ping's answer that wait, either may come first
		synctest.Test(t, func(t *testing.T) {
			held := false
			report := func(w Wait) {
				if !held {
					held = true
					<-time.After(10 * time.Minute)
				}
			}
			p := &liveness{kind: "podman", patience: Patience{Report: report}, ping: func(context.Context) error { return nil }}
			err := p.await(t.Context(), "start a container", func(ctx context.Context) error {
				select {
				case <-time.After(11 * time.Minute):
					return nil
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			})
			if err != nil {
				t.Fatalf("await = %v, want the call's own end", err)
			}
		})
	}
}

func TestAProcessThatStartsIsASignOfLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &liveness{kind: "podman", pid: os.Getpid(), patience: Patience{Silent: 3 * time.Second, Limit: time.Minute}}
		err := p.await(t.Context(), "start its service", forever)
		if waited := (*WaitError)(nil); !errors.As(err, &waited) || !waited.Lives || waited.Waited < time.Minute {
			t.Errorf("await = %v, want it to wait for the whole limit", err)
		}
	})
}

func TestAStoppedProcessIsNamed(t *testing.T) {
	cmd := exec.Command("sleep", "600")
	must.Do(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	must.Do(t, cmd.Process.Signal(syscall.SIGSTOP))
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(cmd.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		t.Fatalf("the process is not stopped: %v, %v", status, err)
	}
	synctest.Test(t, func(t *testing.T) {
		p := &liveness{kind: "podman", pid: cmd.Process.Pid}
		err := p.await(t.Context(), "start its service", forever)
		want := fmt.Sprintf("its process %d is stopped (SIGSTOP)", cmd.Process.Pid)
		remedy := fmt.Sprintf("kill -CONT %d", cmd.Process.Pid)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(hint.Of(err), remedy) {
			t.Errorf("await = %v (%s), want %q (%s)", err, hint.Of(err), want, remedy)
		}
	})
}

func TestALostEngineIsGivenUpSooner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dead := true
		p := &liveness{kind: "docker", ping: func(context.Context) error {
			if dead {
				return errors.New("no answer")
			}
			return nil
		}}
		waits := func() time.Duration {
			began := time.Now()
			_ = p.await(t.Context(), "remove a container", forever)
			return time.Since(began)
		}
		first, second := waits(), waits()
		dead = false
		if third := waits(); first < time.Minute || second > lostTime+time.Second || third < DefaultLimit {
			t.Errorf("waited %v, then %v, and %v once it answers again", first, second, third)
		}
	})
}

func TestAWaitIsReportedWhenItTakesLong(t *testing.T) {
	for _, c := range []struct {
		name  string
		takes time.Duration
		muted bool
		want  []string
	}{
		{"quick", 1500 * time.Millisecond, false, nil},
		{"long", 3500 * time.Millisecond, false, []string{"make a container 2s", "make a container 3s", "over"}},
		{"while a program has the terminal", 3500 * time.Millisecond, true, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var got []string
				report := func(w Wait) {
					line := fmt.Sprintf("%s %v", w.Step, w.For)
					if w.Over {
						line = "over"
					}
					got = append(got, line)
				}
				p := &liveness{kind: "podman", patience: Patience{Report: report}, ping: func(context.Context) error { return nil }}
				p.muted.Store(c.muted)
				call := func(context.Context) error { <-time.After(c.takes); return nil }
				must.Do(t, p.await(t.Context(), "make a container", call))
				if !slices.Equal(got, c.want) {
					t.Errorf("reported %q, want %q", got, c.want)
				}
			})
		})
	}
}

func TestACancelledWaitEndsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		p := &liveness{kind: "podman", ping: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }}
		began := time.Now()
		time.AfterFunc(2500*time.Millisecond, cancel)
		err := p.await(ctx, "make a container", forever)
		if !errors.Is(err, context.Canceled) || time.Since(began) != 2500*time.Millisecond {
			t.Errorf("await = %v after %v, want context.Canceled with the cancellation", err, time.Since(began))
		}
	})
}

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
	dir := must.ShortDir(t)
	conf := filepath.Join(dir, "containers.conf")
	must.Do(t, os.WriteFile(conf, podmanConf(), 0o600))
	serve := func(name string) (socket string, ended <-chan struct{}) {
		socket = filepath.Join(dir, name)
		cmd := exec.Command("podman", "system", "service", "--time", "2", "unix://"+socket)
		if os.Getenv("CONTAINERS_CONF") == "" {
			cmd.Env = append(os.Environ(), "CONTAINERS_CONF="+conf)
		}
		must.Do(t, cmd.Start())
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
	dir := must.ShortDir(t)
	must.Do(t, os.WriteFile(filepath.Join(dir, "podman"), []byte("#!/bin/sh\n"+script), 0o755))
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
		{"it is stopped", "echo 'Error: half a word' >&2; kill -STOP $$", "is stopped (SIGSTOP)"},
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
	e := must.Get(startService(t.Context(), Patience{Report: func(w Wait) {
		if steps = append(steps, w.Step); len(steps) == 1 {
			if err := os.WriteFile(gate, nil, 0o600); err != nil {
				t.Error(err)
			}
		}
	}}))(t)
	e.Close()
	if len(steps) == 0 || steps[0] != "start its service" {
		t.Errorf("reported %q, want the start of the service first", steps)
	}
}

func TestTheLastErrorOfAServiceIsFound(t *testing.T) {
	const at = `time="2026-11-22T12:54:06Z" level=`
	for _, c := range []struct{ output, want string }{
		{"", ""},
		{"Error: no room\n" + at + "error msg=\"unable to get systemd connection to add healthchecks\"\n", "Error: no room"},
		{"Error: database is broken\n", "Error: database is broken"},
		{at + `error msg="no space left on \"/\"" x=1` + "\n" + at + "warning msg=\"IdleTracker\"\n", `no space left on "/"`},
		{at + "info msg=\"starting\"\n", ""},
		{at + "fatal msg=\"cut\n", at + `fatal msg="cut`},
	} {
		logs := &Tail{}
		must.Get(logs.Write([]byte(c.output)))(t)
		if got := logs.LastError(); got != c.want {
			t.Errorf("last error of %q = %q, want %q", c.output, got, c.want)
		}
	}
}
